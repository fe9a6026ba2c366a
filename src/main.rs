//! `gpu-culler`: reads the command line and the environment, and hands over.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use gpu_culler::cli::{self, args};
use gpu_culler::settings::Environment;
use tracing_subscriber::EnvFilter;

/// How long work in hand may take to end once it was told to.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Waiting is nearly all it does; each further thread would only hold memory of its own.
const WORKERS: usize = 1;

fn main() -> ExitCode {
    let environment: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let filter = EnvFilter::try_from_env("GPU_CULLER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.with_ansi(std::io::stderr().is_terminal()).with_target(false).init();
    match args::parse(std::env::args_os()) {
        Ok(cli) => block_on(cli.threads(), cli::run(cli, environment)),
        Err(error) if environment.is_managed() && args::means_service(std::env::args_os(), &error) => {
            block_on(None, cli::misused(error.to_string(), environment))
        }
        Err(error) => error.exit(),
    }
}

/// `threads` for work, or one of them beside the main thread, on which the cycle runs.
fn block_on(threads: Option<usize>, work: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = match builder.worker_threads(threads.unwrap_or(WORKERS)).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_MOMENT);
    outcome.unwrap_or_else(|error| failed(&error))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    tracing::error!("{error:#}");
    ExitCode::FAILURE
}
