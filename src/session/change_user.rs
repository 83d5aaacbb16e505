//! COM_CHANGE_USER: the session ends and another begins on the same connection of the client.

use super::admission::Admission;
use super::limits::IdleLimit;
use super::state::Session;
use std::sync::Arc;
use wire::WireError;
use wire::auth::Accounts;
use wire::channel::Channel;
use wire::login::ServerOptions;

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
        let enter = |user: &str, most| self.registered.change_user(user, most);
        let admission = Admission { accounts, shared: self.shared, enter };
        let (capabilities, nonce) = (self.capabilities, self.nonce);
        let login = wire::login::change_user(client, argument, capabilities, nonce, options, &admission)?;
        let idle_limit = IdleLimit::new(&self.shared.config.variables(), &self.socket);
        let (socket, registered) = (self.socket.clone(), Arc::clone(&self.registered));
        let session = Self::new(self.shared, socket, registered, idle_limit, login);
        // A user who vanished meanwhile has none.
        *self = session.ok_or(WireError::Closed)?;
        Ok(())
    }
}
