//! Arguments of `ibifs world`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{NetworkOptions, Output, value};
use crate::formats::base_url::BaseUrl;

/// `ibifs world`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct World {
    /// What is done with a mount
    #[command(subcommand)]
    pub command: Option<WorldCommand>,
    /// Where to mount them
    #[arg(required = true)]
    pub mount_point: Option<PathBuf>,
    /// URL of a resolver that finds the Archive of an item; of several, the next one is asked where
    /// one does not answer
    #[arg(long, value_name = "URL", value_parser = value::base_url, required_unless_present = "archive")]
    pub resolver: Vec<BaseUrl>,
    /// URL of an Archive that is asked first
    #[arg(long, value_name = "URL", value_parser = value::base_url)]
    pub archive: Vec<BaseUrl>,
    /// Directory of the cache [default: ibifs/world in $XDG_CACHE_HOME, or in ~/.cache]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// How much the cache may take on the disk; 64M at least [default: 10G]
    #[arg(long, value_name = "BYTES", value_parser = value::bytes)]
    pub cache_size: Option<u64>,
    /// Also reach Archives with addresses of private networks that a resolver or an Archive names
    #[arg(long)]
    pub allow_private: bool,
    /// Stay in the foreground and log to standard error
    #[arg(short, long)]
    pub foreground: bool,
    /// The options by which other machines are reached.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
    /// Descriptor to write to once the tree is usable
    #[arg(long, hide = true)]
    pub ready_fd: Option<i32>,
}

/// A command on a mount of items of other Archives.
#[derive(Debug, Subcommand)]
pub enum WorldCommand {
    /// Print what the process of a mount holds and has done
    Status(WorldStatus),
    /// Fetch whole items into the cache
    Fetch(WorldKeep),
    /// Fetch whole items into the cache, where they stay
    Pin(WorldKeep),
    /// Remove items from the cache, also those that stay
    Drop(WorldKeep),
}

/// `ibifs world fetch`, `ibifs world pin` and `ibifs world drop`
#[derive(Debug, Args)]
pub struct WorldKeep {
    /// Where they are mounted
    pub mount_point: PathBuf,
    /// Identifiers, or paths below the mount point
    #[arg(required = true, value_name = "IBI")]
    pub items: Vec<String>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs world status`
#[derive(Debug, Args)]
pub struct WorldStatus {
    /// Where they are mounted
    pub mount_point: PathBuf,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}
