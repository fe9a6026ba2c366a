//! The command line: `run` is the service, everything else looks and tells.

pub mod args;
mod cards;
mod check;
mod exempt;
mod explain;
mod look;
mod mail_preview;
mod plan;
pub mod simulate;

use std::process::ExitCode;

use args::{Cli, Command, Common};
use clap::ValueEnum;

use crate::daemon;
use crate::settings::{Environment, Sources};

/// For whom a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// Everything is as it should be.
const FINE: u8 = 0;
/// Something wrong was found.
const WRONG: u8 = 1;

/// Carries out a command. The exit code is 0 (fine) or 1 (something wrong was found).
pub async fn run(cli: Cli, environment: Environment) -> anyhow::Result<ExitCode> {
    let Cli { common: Common { config, mode, format, flags }, command } = cli;
    let sources = Sources { file: config, environment, mode, flags, misuse: None };
    let fine = match command {
        None => service(sources, None).await?,
        Some(Command::Run { record }) => service(sources, record).await?,
        Some(Command::Plan) => plan::run(&sources, format).await?,
        Some(Command::Explain { server }) => explain::run(&sources, &server, format).await?,
        Some(Command::Check { mail }) => check::run(&sources, mail.as_deref(), format).await?,
        Some(Command::MailPreview { kind, html }) => mail_preview::run(&sources, kind, html, format)?,
        Some(Command::Agent { flags }) => {
            daemon::agent(&sources, &flags).await?;
            true
        }
        Some(Command::Cards { time }) => cards::run(time.into()).await?,
        Some(Command::Simulate { traces, compare }) => {
            let (config, compare) = (sources.file.as_deref(), compare.as_deref());
            simulate::run(&simulate::Simulation { traces: &traces, config, compare, mode, format })?
        }
    };
    Ok(ExitCode::from(if fine { FINE } else { WRONG }))
}

/// A managed service that ends at its start takes the Hub down with it: where the command line itself
/// is wrong, it stays up and says so.
pub async fn misused(problem: String, environment: Environment) -> anyhow::Result<ExitCode> {
    let sources = Sources { environment, misuse: Some(problem), ..Sources::default() };
    service(sources, None).await?;
    Ok(ExitCode::from(WRONG))
}

async fn service(sources: Sources, record: Option<std::path::PathBuf>) -> anyhow::Result<bool> {
    daemon::run(daemon::Run { sources, record }).await?;
    Ok(true)
}

/// Prints a line to standard output; a closed pipe ends the output, not the program.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a value as one line of JSON.
fn say_json(value: &impl serde::Serialize) {
    say(&serde_json::to_string(value).unwrap_or_default());
}
