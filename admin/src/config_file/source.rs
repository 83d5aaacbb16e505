//! Reading configuration files: the one place here that touches the file system.

use super::lexer::{Source, TEXT_LIMIT};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads one file.
pub(super) fn read(path: &Path) -> Result<Source, String> {
    let name = path.display().to_string();
    let bytes = bytes(path).map_err(|why| format!("{name}: {why}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        format!("{name}:{line}: the text is not UTF-8")
    })?;
    Ok(Source { name, text })
}

/// Reads what a file includes; a relative path begins at the directory of the file that says it.
pub(super) fn include(from: &str, path: &str) -> Result<Source, String> {
    let directory = Path::new(from).parent().unwrap_or_else(|| Path::new(""));
    read(&directory.join(path))
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    // A pipe or a terminal could keep its reader waiting for ever.
    let plain = path.metadata().map_err(|error| error.to_string())?.is_file();
    if !plain && path != Path::new("/dev/null") {
        return Err("not a file".into());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let limit = TEXT_LIMIT as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    match bytes.len() > TEXT_LIMIT {
        true => Err(format!("more than {} MiB", TEXT_LIMIT >> 20)),
        false => Ok(bytes),
    }
}
