//! One hostgroup's servers, side by side in the order of their endpoints: each choice walks through all of them, and places change seldom.

use super::{Endpoint, Server};

/// Servers by endpoint.
#[derive(Debug, Default)]
pub(super) struct Group(Vec<(Endpoint, Server)>);

impl Group {
    fn place(&self, endpoint: &Endpoint) -> Result<usize, usize> {
        self.0.binary_search_by(|(at, _)| at.cmp(endpoint))
    }
    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Endpoint, &Server)> {
        self.0.iter().map(|(endpoint, server)| (endpoint, server))
    }
    /// The one at a place in that order.
    pub(super) fn at(&self, place: usize) -> Option<(&Endpoint, &Server)> {
        self.0.get(place).map(|(endpoint, server)| (endpoint, server))
    }
    pub(super) fn get(&self, endpoint: &Endpoint) -> Option<&Server> {
        self.at(self.place(endpoint).ok()?).map(|(_, server)| server)
    }
    pub(super) fn get_mut(&mut self, endpoint: &Endpoint) -> Option<&mut Server> {
        let place = self.place(endpoint).ok()?;
        self.0.get_mut(place).map(|(_, server)| server)
    }
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Server> {
        self.0.iter_mut().map(|(_, server)| server)
    }
    /// In place of the one that was there.
    pub(super) fn insert(&mut self, endpoint: Endpoint, server: Server) {
        match self.place(&endpoint) {
            Ok(place) => self.0[place].1 = server,
            Err(place) => self.0.insert(place, (endpoint, server)),
        }
    }
    pub(super) fn remove(&mut self, endpoint: &Endpoint) -> Option<Server> {
        self.place(endpoint).ok().map(|place| self.0.remove(place).1)
    }
    pub(super) fn retain(&mut self, stays: impl Fn(&Endpoint, &Server) -> bool) {
        self.0.retain(|(endpoint, server)| stays(endpoint, server));
    }
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Group {
    type Item = (Endpoint, Server);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
