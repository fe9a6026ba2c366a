//! What can be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::Format;
use crate::domain::ServerId;
use crate::policy::Mode;

/// Gives idle GPUs back: a JupyterHub service that warns the owner of an idle session by mail and stops
/// the server only when the promised time has passed unanswered.
#[derive(Debug, Parser)]
#[command(name = "gpu-culler", version, about, after_help = EXIT_CODES)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// What to do; `run` where absent.
    #[command(subcommand)]
    pub command: Option<Command>,
}

const EXIT_CODES: &str =
    "Without a command it is the service (run).\nExit codes: 0 fine, 1 found something wrong, 2 misuse.";

/// What every command takes.
#[derive(Debug, Args)]
pub struct Common {
    /// The config file (TOML); without one the defaults, which only observe
    #[arg(long, short, global = true, env = "GPU_CULLER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How far it may go: observe, warn or enforce; wins over the config file
    #[arg(long, global = true, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// For people or for programs
    #[arg(long, global = true, value_enum, default_value_t)]
    pub format: Format,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Be the service: look, decide, warn and stop, as far as the mode allows
    Run {
        /// Append every observation to this trace, for `simulate` and bug reports
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
    },
    /// Print what one cycle would do, and why; nothing is done
    Plan,
    /// Print the evidence and the verdict of one session
    Explain {
        /// USER for the default server, USER/SERVER for a named one
        #[arg(value_name = "USER[/SERVER]")]
        server: ServerId,
    },
    /// Check config, Hub, scopes, cards, attribution, ledger and mail; one line each, with the remedy
    Check,
    /// Replay traces through the same policy, as mode enforce; fails when an expectation is not met
    Simulate {
        /// Traces, as `run --record` writes them
        #[arg(required = true, value_name = "TRACE")]
        traces: Vec<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
