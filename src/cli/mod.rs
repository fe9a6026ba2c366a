//! The command line.

pub mod simulate;

use clap::ValueEnum;

/// For whom a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Prints a line to standard output; a closed pipe ends the output, not the program.
#[expect(clippy::print_stdout, reason = "the one place where commands print their result")]
pub fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
}
