//! What the rules said of statements, kept for the next ones that they cannot tell from these. It is gone with the rules.

use super::{Query, Verdict};
use crate::digest::Digest;
use arc_swap::ArcSwapOption;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::sync::Arc;

/// How many verdicts are kept. Each has one place, and the last one that belongs there is in it.
/// In tests all have the same.
const PLACES: usize = if cfg!(test) { 1 } else { 1024 };

/// One verdict, and what it was about.
pub struct Remembered {
    digest: Option<Arc<Digest>>,
    user: Box<str>,
    schema: Box<str>,
    client: Box<str>,
    proxy: Option<SocketAddr>,
    flag: u32,
    /// What the rules said.
    pub verdict: Verdict,
    /// Places of the rules that matched.
    pub matched: Box<[usize]>,
}

/// The verdicts that are kept: none where there are no rules.
#[derive(Default)]
pub struct Memo {
    places: Box<[ArcSwapOption<Remembered>]>,
    hasher: RandomState,
    reads_client: bool,
    reads_proxy: bool,
}

impl Memo {
    /// For rules of which some look at the client's address, or at the proxy's.
    pub fn new(reads_client: bool, reads_proxy: bool) -> Self {
        let places = (0..PLACES).map(|_| ArcSwapOption::empty()).collect();
        Self { places, reads_client, reads_proxy, ..Self::default() }
    }
    /// What the rules said of a statement that they cannot tell from this one. A rule that looks at the text of statements itself
    /// might: of what it was asked about nothing is kept.
    pub fn find(&self, query: &Query<'_>) -> Option<Arc<Remembered>> {
        let known = self.place(query)?.load();
        let is_about = |known: &&Arc<Remembered>| {
            known.flag == query.flag
                && known.digest.as_deref() == query.digest.map(|digest| &**digest)
                && *known.user == *query.user
                && *known.schema == *query.schema
                && *known.client == *self.client(query)
                && known.proxy == self.proxy(query)
        };
        known.as_ref().filter(is_about).cloned()
    }
    /// Keeps a verdict.
    pub fn keep(&self, query: &Query<'_>, verdict: &Verdict, matched: Vec<usize>) {
        let Some(place) = self.place(query) else { return };
        place.store(Some(Arc::new(Remembered {
            digest: query.digest.cloned(),
            user: query.user.into(),
            schema: query.schema.into(),
            client: self.client(query).into(),
            proxy: self.proxy(query),
            flag: query.flag,
            verdict: verdict.clone(),
            matched: matched.into(),
        })));
    }
    fn place(&self, query: &Query<'_>) -> Option<&ArcSwapOption<Remembered>> {
        let digest = query.digest.map_or(0, |digest| digest.number);
        let about = (digest, query.user, query.schema, query.flag, self.client(query));
        let place = (self.hasher.hash_one(about) as usize).checked_rem(self.places.len())?;
        self.places.get(place)
    }
    fn client<'a>(&self, query: &Query<'a>) -> &'a str {
        if self.reads_client { query.client } else { "" }
    }
    fn proxy(&self, query: &Query<'_>) -> Option<SocketAddr> {
        query.proxy.filter(|_| self.reads_proxy)
    }
}
