//! What can be written on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};

use super::Format;
use crate::domain::ServerId;
use crate::message::Kind;
use crate::policy::Mode;
use crate::settings::{AgentFlags, Flags};

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

impl Cli {
    /// How many threads it needs, where not one for each core: a GPU node has many, and the agent little to do.
    pub fn threads(&self) -> Option<usize> {
        matches!(self.command, Some(Command::Agent { .. })).then_some(1)
    }
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
    /// What an entry for jupyterhub-idle-culler passes.
    #[command(flatten)]
    pub flags: Flags,
}

/// Reads the command line.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(arguments.map(spelled))
}

/// Whether a command line that could not be read was meant to be the service: it names no other command.
pub fn means_service(arguments: impl Iterator<Item = OsString>, error: &clap::Error) -> bool {
    let command = Cli::command();
    let others: Vec<&str> =
        command.get_subcommands().map(clap::Command::get_name).filter(|n| *n != "run").collect();
    let names_another = |word: OsString| word.to_str().is_some_and(|word| others.contains(&word));
    error.use_stderr()
        && error.kind() != ErrorKind::InvalidSubcommand
        && !arguments.into_iter().any(names_another)
}

/// `--cull_every=60` is `--cull-every=60`, as jupyterhub-idle-culler 1 had it.
fn spelled(argument: OsString) -> OsString {
    let Some(text) = argument.to_str().filter(|text| text.starts_with("--")) else {
        return argument;
    };
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let name = name.replace('_', "-");
    value.map_or_else(|| name.clone(), |value| format!("{name}={value}")).into()
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
    Check {
        /// Send a mail with made-up data to this address, the whole way that warnings go
        #[arg(long, value_name = "ADDRESS")]
        mail: Option<String>,
    },
    /// Print a mail with made-up data, in the words of `mail.templates` where that is set; all without a name
    MailPreview {
        /// warning, notice, reminder, stopped, withdrawn, waiting, exemption, unreachable or frozen
        #[arg(value_name = "MAIL")]
        kind: Option<Kind>,
        /// The HTML part instead of the text
        #[arg(long)]
        html: bool,
    },
    /// Run on a GPU node: read its cards and tell the service and Prometheus
    Agent {
        /// Where and to whom.
        #[command(flatten)]
        flags: AgentFlags,
    },
    /// Print what the cards did, as read, over some time; for tests on a real card
    #[command(hide = true)]
    Cards {
        /// How long to watch
        #[arg(long, default_value = "10s", value_name = "TIME")]
        time: humantime::Duration,
    },
    /// Replay traces through the same policy, as mode enforce unless --mode says otherwise; fails when an
    /// expectation is not met
    Simulate {
        /// A second config: both policies side by side, in stops, GPU-hours freed and stops to be regretted
        #[arg(long, value_name = "FILE")]
        compare: Option<PathBuf>,
        /// Traces, as `run --record` writes them
        #[arg(required = true, value_name = "TRACE")]
        traces: Vec<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Flags {
        let words = std::iter::once("gpu-culler").chain(line.split_whitespace()).map(OsString::from);
        parse(words).unwrap().common.flags
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The spellings that zero-to-jupyterhub and The Littlest JupyterHub pass.
    #[test]
    fn entries_for_the_idle_culler_are_understood_in_all_their_spellings() {
        let z2jh = flags(
            "--url=http://localhost:8081/hub/api --timeout=3600 --cull-every=600 --concurrency=10 --max-age=0 \
             --cull-users --cull-admin-users=false --remove-named-servers",
        );
        assert_eq!((z2jh.timeout, z2jh.cull_every, z2jh.max_age), (Some(3600), Some(600), Some(0)));
        assert_eq!((z2jh.cull_users, z2jh.cull_admin_users), (Some(true), Some(false)));
        assert_eq!(z2jh.remove_named_servers, Some(true));
        let spaced = flags("--timeout 600 --cull_every=60 --cull_users=true run");
        assert_eq!((spaced.timeout, spaced.cull_every, spaced.cull_users), (Some(600), Some(60), Some(true)));
    }

    #[test]
    fn only_what_was_meant_to_be_the_service_stays_up_when_it_is_misused() {
        let meant = |line: &str| {
            let words = || line.split_whitespace().map(OsString::from);
            let error = parse(std::iter::once(OsString::from("gpu-culler")).chain(words())).unwrap_err();
            means_service(words(), &error)
        };
        assert!(meant("--cull-everything") && meant("run --timeout=soon") && meant("--mode=kill"));
        assert!(!meant("no-such-command") && !meant("check --no-such-flag") && !meant("plan --mode=kill"));
        assert!(!meant("--help") && !meant("run --help"));
    }

    #[test]
    fn an_unknown_flag_is_refused() {
        let words = ["gpu-culler", "--cull-everything"].map(OsString::from).into_iter();
        assert_eq!(parse(words).unwrap_err().exit_code(), 2);
    }
}
