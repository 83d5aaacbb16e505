//! Where the configuration file and the data directory are.

use crate::cli::{DATADIR, Options};
use admin::ConfigFile;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The configuration file in a data directory.
const NAME: &str = "pointsman.cnf";
/// The machine's.
const SYSTEM: &str = "/etc/pointsman.cnf";

/// What a start begins with.
pub struct Located {
    /// `-D`, or else what the file says, or else [`DATADIR`].
    pub datadir: PathBuf,
    /// `-c`, or else the first of the usual places that has one.
    pub file: Option<ConfigFile>,
}

/// Finds both, and reads the file.
pub fn locate(options: &Options) -> Result<Located, String> {
    locate_with(options, Path::new(SYSTEM))
}

fn locate_with(options: &Options, system: &Path) -> Result<Located, String> {
    let datadir = options.datadir.clone();
    let usual = || {
        let directory = datadir.as_deref().unwrap_or(Path::new(DATADIR));
        [directory.join(NAME), system.into()].into_iter().find(|path| is_there(path))
    };
    let file = options.config.clone().or_else(usual).map(|path| ConfigFile::read(&path)).transpose();
    let file = file.map_err(|error| error.to_string())?;
    if options.reload && file.is_none() {
        return Err("--reload: there is no configuration file; name one with -c FILE".into());
    }
    let said = || file.as_ref().and_then(ConfigFile::datadir);
    let datadir = datadir.clone().or_else(said).unwrap_or_else(|| PathBuf::from(DATADIR));
    Ok(Located { datadir, file })
}

/// A file that cannot be looked at is there: reading it says why it cannot be used.
fn is_there(path: &Path) -> bool {
    !path
        .symlink_metadata()
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The data directory, and the file that is found.
    fn found(options: &Options, system: &Path) -> (PathBuf, Option<PathBuf>) {
        let located = locate_with(options, system).unwrap();
        (located.datadir, located.file.map(|file| file.path().to_path_buf()))
    }

    #[test]
    fn the_nearest_file_counts() {
        let dir = tempfile::tempdir().unwrap();
        let (data, system, named) =
            (dir.path().join("data"), dir.path().join("system"), dir.path().join("named"));
        fs::create_dir(&data).unwrap();
        let mut options = Options { datadir: Some(data.clone()), ..Options::default() };
        assert_eq!(found(&options, &system), (data.clone(), None));
        fs::write(&system, "datadir = \"/elsewhere\"").unwrap();
        assert_eq!(found(&options, &system), (data.clone(), Some(system.clone())));
        fs::write(data.join(NAME), "").unwrap();
        assert_eq!(found(&options, &system), (data.clone(), Some(data.join(NAME))));
        fs::write(&named, "").unwrap();
        options.config = Some(named.clone());
        assert_eq!(found(&options, &system), (data, Some(named.clone())));
        options.datadir = None;
        assert_eq!(found(&options, &system), (DATADIR.into(), Some(named)));
        options.config = Some(system.clone());
        assert_eq!(found(&options, &system), ("/elsewhere".into(), Some(system)));
    }

    #[test]
    fn what_is_asked_for_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let nothing = dir.path().join("nothing");
        let options = Options { datadir: Some(dir.path().into()), reload: true, ..Options::default() };
        let refusal = |options: &Options| locate_with(options, &nothing).err().unwrap();
        assert!(refusal(&options).contains("-c FILE"));
        let options = Options { config: Some(nothing.clone()), ..Options::default() };
        assert!(refusal(&options).contains("nothing: No such file"));
        // Something that is there and is no file is not passed over.
        fs::create_dir(dir.path().join(NAME)).unwrap();
        let options = Options { datadir: Some(dir.path().into()), ..Options::default() };
        assert!(refusal(&options).contains("not a file"));
    }
}
