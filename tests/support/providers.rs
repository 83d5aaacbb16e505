//! Locality providers in shared objects: those of `examples/`, and one that misbehaves as it is told.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The example in Rust, which cargo builds beside the tests because it is a dev-dependency.
pub fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let library = tests.with_file_name("liblocality_provider_example.so");
    assert!(library.exists(), "{} is not there: does the example still build a cdylib?", library.display());
    library
}

/// Compiles the example in C into a directory.
pub fn example_in_c(directory: &Path) -> PathBuf {
    compile("examples/locality-provider-c/provider.c", directory, &[])
}

/// Compiles the misbehaving provider into a directory, with macros that say what its description is like.
pub fn misbehaving(directory: &Path, macros: &[&str]) -> PathBuf {
    compile("tests/support/misbehaving_provider.c", directory, macros)
}

fn compile(source: &str, directory: &Path, macros: &[&str]) -> PathBuf {
    let library = directory.join("provider.so");
    let mut compiler = cc();
    compiler.args(["-shared", "-fPIC"]).args(macros).arg("-o").arg(&library).arg(source).arg("-lpthread");
    run(compiler);
    library
}

/// The C compiler, as strict as the header is to be.
pub fn cc() -> Command {
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Iinclude"]);
    compiler.current_dir(env!("CARGO_MANIFEST_DIR"));
    compiler
}

/// Runs a command, and returns what it prints.
pub fn run(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
