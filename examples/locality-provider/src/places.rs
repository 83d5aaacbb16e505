//! Where servers are, as the configuration says: `NAME REGION [ZONE [ZONE_ID [ACCOUNT]]]`, one after another with `;` or line ends between
//! them; or `@FILE`, which has the same and is read for each batch. `#` begins a comment.

use crate::abi::Location;
use std::collections::HashMap;
use std::fs;

/// The name of the daemon's own place.
pub const OWN: &str = "self";

/// Names to places.
pub type Places = HashMap<String, Location>;

/// Where places are told.
pub enum Source {
    /// In a file.
    File(String),
    /// In the configuration.
    Fixed(Places),
}

impl Source {
    /// Reads the configuration.
    pub fn parse(config: &str) -> Result<Self, String> {
        match config.trim().strip_prefix('@') {
            Some("") => Err("@ needs the name of a file".to_owned()),
            Some(file) => Ok(Self::File(file.to_owned())),
            None => Ok(Self::Fixed(parse(config)?)),
        }
    }
    /// The places as they are now.
    pub fn read(&self) -> Result<Places, String> {
        match self {
            Self::Fixed(places) => Ok(places.clone()),
            Self::File(file) => {
                let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
                parse(&text).map_err(|problem| format!("{file}: {problem}"))
            }
        }
    }
}

fn parse(text: &str) -> Result<Places, String> {
    let mut places = Places::new();
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    for entry in lines.flat_map(|line| line.split(';')) {
        let mut fields = entry.split_whitespace();
        let Some(name) = fields.next() else { continue };
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let place = Location { region: field(), zone: field(), zone_id: field(), account: field() };
        if place.region.is_empty() {
            return Err(format!("{name} has no Region"));
        }
        places.insert(name.trim_end_matches('.').to_ascii_lowercase(), place);
    }
    match places.is_empty() {
        true => {
            Err("no places are told; write NAME REGION [ZONE [ZONE_ID [ACCOUNT]]]; ... or @FILE".to_owned())
        }
        false => Ok(places),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_on_lines_or_between_semicolons() {
        let places = parse("self r1 z1 # here\n\nA.example. r1 z2 i2 3; b.example r2").unwrap();
        assert_eq!(places.len(), 3);
        let a = &places["a.example"];
        assert_eq!((&*a.region, &*a.zone, &*a.zone_id, &*a.account), ("r1", "z2", "i2", "3"));
        assert_eq!((&*places["b.example"].region, &*places["b.example"].zone), ("r2", ""));
        assert_eq!(places[OWN].zone, "z1");
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        for text in ["", " ; \n# self r z", "self", "self r; b.example", "@"] {
            assert!(Source::parse(text).is_err(), "{text}");
        }
        let absent = Source::parse("@/nonexistent/places").unwrap();
        assert!(absent.read().unwrap_err().contains("/nonexistent/places"));
    }
}
