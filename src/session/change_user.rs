//! COM_CHANGE_USER: the session ends and another begins on the same connection of the client.

use super::Sessions;
use super::limits::IdleLimit;
use super::registry::Registered;
use super::state::Session;
use std::sync::Arc;
use wire::auth::{Account, Accounts};
use wire::channel::Channel;
use wire::login::{Login, ServerOptions};
use wire::{SqlError, WireError};

/// The accounts as a session sees them that has a place in the registry already.
struct Readmission<'a> {
    accounts: &'a dyn Accounts,
    shared: &'a Sessions,
    registered: &'a Registered,
}

impl Accounts for Readmission<'_> {
    fn find(&self, user: &str) -> Option<Account> {
        self.accounts.find(user)
    }
    fn has_decoy_hash(&self, user: &str) -> bool {
        self.accounts.has_decoy_hash(user)
    }
    fn admit(&self, user: &str) -> Result<(), SqlError> {
        self.accounts.admit(user)?;
        let most = self.shared.config.users().get(user).map_or(u32::MAX, |user| user.max_connections);
        self.registered.change_user(user, most)
    }
    fn check_schema(&self, login: &Login) -> Result<(), SqlError> {
        self.shared.check_schema(login)
    }
}

impl Session<'_> {
    /// Serves the command. Nothing is left of the session before it, whatever becomes of the new one: a connection it kept is reset or
    /// closed, its statements are dropped. After an error, which the client was told, its connection ends, as MySQL ends it.
    pub fn change_user(
        &mut self,
        client: &mut Channel,
        argument: &[u8],
        options: &ServerOptions,
        accounts: &dyn Accounts,
    ) -> Result<(), WireError> {
        self.clean_up();
        let readmission = Readmission { accounts, shared: self.shared, registered: &self.registered };
        let (capabilities, nonce) = (self.capabilities, self.nonce);
        let login = wire::login::change_user(client, argument, capabilities, nonce, options, &readmission)?;
        let idle_limit = IdleLimit::new(&self.shared.config.variables(), &self.socket);
        let (socket, registered) = (self.socket.clone(), Arc::clone(&self.registered));
        let session = Self::new(self.shared, socket, registered, idle_limit, login);
        // A user who vanished meanwhile has none.
        *self = session.ok_or(WireError::Closed)?;
        Ok(())
    }
}
