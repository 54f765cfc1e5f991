//! New task ids: UUID version 7, so that rows of one time lie together in the store's indexes.
//!
//! The time is given by the caller; the random part comes from a generator seeded by the
//! operating system.

use std::sync::{Mutex, PoisonError};

use tourbillon_store::{TaskId, Time};

/// Makes ids. Shared by reference between threads.
#[derive(Debug)]
pub(crate) struct Ids(Mutex<fastrand::Rng>);

impl Ids {
    pub(crate) fn new() -> Ids {
        Ids(Mutex::new(fastrand::Rng::with_seed(random_seed())))
    }

    /// `n` ids of this moment.
    pub(crate) fn make(&self, now: Time, n: usize) -> Vec<TaskId> {
        let millis = now.0.max(0) as u64 / 1_000;
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..n)
            .map(|_| {
                let random = rng.u128(..).to_be_bytes();
                let random: [u8; 10] = random[..10].try_into().expect("ten of sixteen bytes");
                let id = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
                TaskId(id.as_u128())
            })
            .collect()
    }

    /// A uid for a schedule.
    pub(crate) fn uid(&self) -> u128 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).u128(1..)
    }
}

/// A seed from the operating system's randomness.
pub(crate) fn random_seed() -> u64 {
    let (a, b) = uuid::Uuid::new_v4().as_u64_pair();
    a.rotate_left(32) ^ b
}
