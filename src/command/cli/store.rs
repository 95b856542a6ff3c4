//! Arguments of the commands for stores and mounts.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::{NetworkOptions, Output, value};
use crate::formats::base_url::BaseUrl;
use crate::formats::search::Searched;
use crate::sql::index_url::IndexUrl;

/// `ibifs init`
#[derive(Debug, Args)]
pub struct Init {
    /// Directory of the new store
    #[arg(required_unless_present = "adopt")]
    pub store: Option<PathBuf>,
    /// Adopt this directory, which holds col/, as it is
    #[arg(long, value_name = "DIR")]
    pub adopt: Option<PathBuf>,
    /// Host name that the reps begin with, for ever [default: this machine's, or a random one]
    #[arg(long)]
    pub host: Option<String>,
    /// E-mail address that the reps are built on, for a computer that has no name on the Internet
    #[arg(long, value_name = "NAME@HOST", value_parser = value::host_of_email, conflicts_with_all = ["host", "port"])]
    pub email: Option<String>,
    /// HTTP port of the host; 80 is left out of the reps
    #[arg(long, value_parser = value::port)]
    pub port: Option<u16>,
    /// Address that the IBIps are built on [default: a random private one]
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<IpAddr>,
    /// Port that the IBIps are built on; 800 is left out of the IBIps
    #[arg(long, value_name = "PORT", value_parser = value::port)]
    pub ip_port: Option<u16>,
    /// Seconds between two dates that are issued: 60, 1, 1/10, 1/100 ... [default: 1/1000]
    #[arg(long, value_name = "SECONDS")]
    pub granularity: Option<String>,
    /// URL at which the Archive will be served, with a path if it has one there
    #[arg(long, value_name = "URL", value_parser = value::base_url)]
    pub url: Option<BaseUrl>,
    /// URL of the resolver that persistent links name [default: the Archive's own URL]
    #[arg(long, value_name = "URL", value_parser = value::base_url)]
    pub resolver: Option<BaseUrl>,
    /// What searches read: descriptions, or also the text of the files that everyone may read [default: descriptions]
    #[arg(long, value_name = "WHAT", value_parser = value::searched())]
    pub search: Option<Searched>,
    /// Index in a PostgreSQL server: postgres://USER@HOST:PORT/DATABASE [default: a file in the store]
    #[arg(long, value_name = "URL", value_parser = value::HidingPassword(value::index_url))]
    pub index: Option<IndexUrl>,
    /// Identity of an Archive that is rebuilt: the rep of its service, and its IBIp
    #[arg(long, value_name = "IBI")]
    pub service: Vec<String>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs mount`
#[derive(Debug, Args)]
pub struct Mount {
    /// Directory of the store, or URL of an Archive elsewhere
    pub store: PathBuf,
    /// Where to mount it
    pub mount_point: PathBuf,
    /// Mount options, joined by commas: lang=, list=all, ro, allow_other ...
    #[arg(short = 'o', value_name = "OPTIONS")]
    pub options: Vec<String>,
    /// With a URL: directory of the cache [default: ibifs/world in $XDG_CACHE_HOME, or in ~/.cache]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// With a URL: how much the cache may take on the disk; 64M at least [default: 10G]
    #[arg(long, value_name = "BYTES", value_parser = value::bytes)]
    pub cache_size: Option<u64>,
    /// The options by which other machines are reached.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// Stay in the foreground and log to standard error
    #[arg(short, long)]
    pub foreground: bool,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
    /// Descriptor to write to once the tree is usable
    #[arg(long, hide = true)]
    pub ready_fd: Option<i32>,
}

/// `ibifs umount`
#[derive(Debug, Args)]
pub struct Umount {
    /// Where it is mounted
    pub mount_point: PathBuf,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs status`
#[derive(Debug, Args)]
pub struct Status {
    /// Store or mount point [default: all that is mounted]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs quickstart`
#[derive(Debug, Args)]
pub struct Quickstart {
    /// Where to mount the demonstration store
    #[arg(default_value = "mnt/demo")]
    pub mount_point: PathBuf,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs upn`
#[derive(Debug, Args)]
pub struct Upn {
    /// Store or mount point [default: the only one that is mounted]
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: Option<PathBuf>,
    /// Name space of six letters and digits, to which the prefixes belong
    #[arg(value_name = "NAME", requires = "prefixes")]
    pub name: Option<String>,
    /// How identifiers begin: example.org/archive, 8JMKD3MGP8W ...
    #[arg(value_name = "PREFIX")]
    pub prefixes: Vec<String>,
    /// Remove this name space and its prefixes
    #[arg(long, value_name = "NAME", requires = "place", conflicts_with = "name")]
    pub remove: Option<String>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}
