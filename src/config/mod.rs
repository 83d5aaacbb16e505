//! Immutable configuration snapshots, published by LOAD and read without locks.

use admin::Variables;
use admin::rows::UserRow;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::auth::StoredPassword;

/// A user as sessions need it.
#[derive(Clone)]
pub struct User {
    /// How to verify the password.
    pub password: StoredPassword,
    /// Hostgroup of statements no rule claims.
    pub default_hostgroup: u32,
    /// Schema where the client names none.
    pub default_schema: Option<String>,
}

/// Active frontend users by name.
pub type Users = HashMap<String, User>;

/// The snapshots in force.
pub struct Config {
    variables: ArcSwap<Variables>,
    users: ArcSwap<Users>,
    version: AtomicU64,
}

impl Config {
    /// Starts with the given variables and no users.
    pub fn new(variables: Variables) -> Self {
        Self {
            variables: ArcSwap::from_pointee(variables),
            users: ArcSwap::default(),
            version: AtomicU64::new(1),
        }
    }
    /// Variables in force.
    pub fn variables(&self) -> arc_swap::Guard<Arc<Variables>> {
        self.variables.load()
    }
    /// Users in force.
    pub fn users(&self) -> arc_swap::Guard<Arc<Users>> {
        self.users.load()
    }
    /// Grows with each change of the variables; workers poll at once when it does.
    pub fn variables_version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
    /// Puts variables in force.
    pub fn set_variables(&self, variables: Variables) {
        self.variables.store(Arc::new(variables));
        self.version.fetch_add(1, Ordering::AcqRel);
    }
    /// Puts users in force: active frontend rows.
    pub fn set_users(&self, rows: &[UserRow]) {
        let users = rows.iter().filter(|row| row.active && row.frontend).map(|row| {
            let user = User {
                password: StoredPassword::parse(&row.password),
                default_hostgroup: row.default_hostgroup,
                default_schema: row.default_schema.clone(),
            };
            (row.username.clone(), user)
        });
        self.users.store(Arc::new(users.collect()));
    }
}
