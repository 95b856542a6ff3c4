//! Arguments of the services over HTTP.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{NetworkOptions, Output, value};
use crate::formats::base_url::BaseUrl;
use crate::resolver::registry::RegistryPlace;
use crate::resolver::service::PeerResolver;

/// `ibifs serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Directory of the store, mounted or not
    pub store: PathBuf,
    /// Address and port to listen on; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// URL at which others reach it, with a path if it has one there [default: that in archive.ibi,
    /// else http:// with the Archive's host and port]
    #[arg(long, value_name = "URL", value_parser = value::base_url, conflicts_with = "address")]
    pub url: Option<BaseUrl>,
    /// Host, or host:port, at which others reach it by http [default: host and port of the Archive]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = value::address)]
    pub address: Option<String>,
    /// Address for readers, harvesters and a resolver's administrator to write to [default: the
    /// contact in archive.ibi, else postmaster at the Archive's host]
    #[arg(long, value_name = "NAME@HOST", value_parser = value::email)]
    pub email: Option<String>,
    /// URL of a resolver that includes the Archive while it is served; may be repeated
    #[arg(long, value_name = "URL", requires = "registration_key_file")]
    pub resolver: Vec<String>,
    /// File with the key that the resolver's administrator gave to this Archive; one for each
    /// resolver in their order, or one for all
    #[arg(long, value_name = "FILE", requires = "resolver")]
    pub registration_key_file: Vec<PathBuf>,
    /// File with the tokens of the Archives that may send items and originals to this one
    #[arg(long, value_name = "FILE")]
    pub transfer_token_file: Option<PathBuf>,
    /// File with the keys of the logs whose checkpoints this Archive cosigns
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub witness_logs: Option<PathBuf>,
    /// The most of the time, in percent, for which files are read for audits by other Archives
    #[arg(long, value_name = "PERCENT", default_value_t = 100, hide_short_help = true,
        value_parser = clap::value_parser!(u8).range(1..=100))]
    pub audit_share: u8,
    /// File with the certificate, in PEM form, for a service that speaks TLS itself; read again on
    /// SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// File with the key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Address of a reverse proxy, whose headers Forwarded and X-Forwarded-For name the client
    #[arg(long, value_name = "ADDRESS", alias = "proxy")]
    pub trusted_proxy: Vec<IpAddr>,
    /// The options of its reports of itself.
    #[command(flatten)]
    pub monitoring: Monitoring,
    /// The options by which other machines are reached.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// The options of a service's reports of itself.
#[derive(Debug, Args)]
pub struct Monitoring {
    /// Address and port at which it reports of itself: /healthz, /readyz and /metrics, without TLS
    /// and for anyone who reaches it
    #[arg(long, value_name = "ADDRESS:PORT", hide_short_help = true)]
    pub metrics: Option<SocketAddr>,
    /// File to which a line for each request is written, '-' for standard output; opened again on
    /// SIGHUP
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub access_log: Option<PathBuf>,
    /// Form of these lines
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        default_value_t,
        requires = "access_log",
        hide_short_help = true
    )]
    pub access_log_format: LogForm,
}

/// The form of an access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// That of Apache and nginx
    #[default]
    Combined,
    /// A JSON object per line
    Json,
}

/// `ibifs resolver`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Resolver {
    /// What to do instead of answering
    #[command(subcommand)]
    pub command: Option<ResolverCommand>,
    /// Database: a file, or postgres://USER@HOST:PORT/DATABASE
    #[arg(long, value_name = "FILE|URL", value_parser = value::registry_place(),
          value_hint = ValueHint::FilePath, required = true)]
    pub db: Option<RegistryPlace>,
    /// Address and port to listen on; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081")]
    pub listen: SocketAddr,
    /// URL at which readers reach it, with a path if it has one there [default: where it listens]
    #[arg(long, value_name = "URL", value_parser = value::base_url, conflicts_with = "address")]
    pub url: Option<BaseUrl>,
    /// Host, or host:port, at which readers reach it by http [default: where it listens]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = value::address)]
    pub address: Option<String>,
    /// File with the certificate, in PEM form, for a service that speaks TLS itself; read again on
    /// SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// File with the key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Address of a reverse proxy, whose headers Forwarded and X-Forwarded-For name the client
    #[arg(long, value_name = "ADDRESS", alias = "proxy")]
    pub trusted_proxy: Vec<IpAddr>,
    /// File or URL with a list of Archives that are asked after the registered ones
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub federated_archives: Vec<String>,
    /// Another resolver of the federation, and its public key
    #[arg(long, value_name = "URL=KEY", value_parser = value::peer)]
    pub peer: Vec<PeerResolver>,
    /// Also ask Archives with addresses of private networks that a peer or a list at a URL names
    #[arg(long, hide_short_help = true)]
    pub allow_private: bool,
    /// File with the prefixes that complete 'upn:' names, as upn.txt of a store
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub upn: Option<PathBuf>,
    /// Accept registrations by the protocol of 2009, by which anyone may register documents
    #[arg(long)]
    pub registration_2009: bool,
    /// The options of its reports of itself.
    #[command(flatten)]
    pub monitoring: Monitoring,
    /// The options by which other machines are reached.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// A command on a resolver's database.
#[derive(Debug, Subcommand)]
pub enum ResolverCommand {
    /// Register Archives by the identifiers of their services; prints a key for each
    Register(Register),
    /// Remove an Archive
    Unregister(Unregister),
    /// List the Archives that are registered, and where they are included
    List(Registered),
    /// Print the resolver's public key, which its peers need; makes it if there is none
    Key(ResolverKey),
    /// List the actors of the protocol of 2009, or remove some
    Actors(Actors),
    /// List the documents of the protocol of 2009, or remove some
    Documents(Documents),
}

/// `ibifs resolver register`
#[derive(Debug, Args)]
pub struct Register {
    /// Database: a file, or postgres://USER@HOST:PORT/DATABASE
    #[arg(long, value_name = "FILE|URL", value_parser = value::registry_place(),
          value_hint = ValueHint::FilePath)]
    pub db: RegistryPlace,
    /// Identifier of the Archive's service
    #[arg(required = true)]
    pub service: Vec<String>,
    /// File with the key, instead of a random one
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs resolver unregister`
#[derive(Debug, Args)]
pub struct Unregister {
    /// The resolver's database
    #[arg(long, value_name = "FILE|URL", value_parser = value::registry_place(),
          value_hint = ValueHint::FilePath)]
    pub db: RegistryPlace,
    /// Identifier of the Archive's service
    pub service: String,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `ibifs resolver actors`.
#[derive(Debug, Args)]
pub struct Actors {
    /// The resolver's database
    #[arg(long, value_name = "FILE|URL", value_parser = value::registry_place(),
          value_hint = ValueHint::FilePath)]
    pub db: RegistryPlace,
    /// Remove the actor with this identifier, and all that it has registered
    #[arg(long, value_name = "ACTORID")]
    pub remove: Vec<String>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `ibifs resolver documents`.
#[derive(Debug, Args)]
pub struct Documents {
    /// The resolver's database
    #[arg(long, value_name = "FILE|URL", value_parser = value::registry_place(),
          value_hint = ValueHint::FilePath)]
    pub db: RegistryPlace,
    /// Remove the document with this identifier, and all copies of it
    #[arg(long, value_name = "DOCUMENTID")]
    pub remove: Vec<String>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs resolver list`
#[derive(Debug, Args)]
pub struct Registered {
    /// The resolver's database
    #[arg(long, value_name = "FILE|URL", value_parser = value::registry_place(),
          value_hint = ValueHint::FilePath)]
    pub db: RegistryPlace,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs text-helper`
#[derive(Debug, Args)]
pub struct TextHelper {
    /// How many bytes of text are written at most
    pub longest: usize,
}

/// `ibifs resolver key`
#[derive(Debug, Args)]
pub struct ResolverKey {
    /// Database: a file, or postgres://USER@HOST:PORT/DATABASE
    #[arg(long, value_name = "FILE|URL", value_parser = value::registry_place(),
          value_hint = ValueHint::FilePath)]
    pub db: RegistryPlace,
    /// Replace the key; peers refuse later lists until they have the new one
    #[arg(long)]
    pub new: bool,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs preview-helper`
#[derive(Debug, Args)]
pub struct PreviewHelper {
    /// The media type of the file at standard input
    pub media_type: String,
}
