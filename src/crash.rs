//! Places where a test stops the program to kill it there, as a crash would (reliability-security.md T-3).
//!
//! Invariants: without the feature `testing` a place is nothing; a thread that is stopped does nothing until it is
//! told to go on, and then goes on as if nothing had been.
//!
//! `SANDUR_STOPS` names a folder. A file of a place's name in it, small letters, stops the program there; a number
//! inside says at which time that it comes by. Once it stands, there is a file `<name>.reached`; it goes on when the
//! first file is removed.

use std::fmt::Display;

/// The program comes by a place.
#[cfg(not(feature = "testing"))]
#[inline]
pub fn point(_name: impl Display) {}

/// The program comes by a place.
#[cfg(feature = "testing")]
pub fn point(name: impl Display) {
    use std::path::PathBuf;
    use std::sync::{LazyLock, Mutex, PoisonError};
    use std::time::Duration;

    static STOPS: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os("SANDUR_STOPS").map(PathBuf::from));
    static COUNTING: Mutex<()> = Mutex::new(());

    let Some(folder) = STOPS.as_ref() else { return };
    let name = name.to_string().to_lowercase();
    let wanted = folder.join(&name);
    let counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(text) = std::fs::read_to_string(&wanted) else { return };
    let times: u32 = text.trim().parse().unwrap_or(1);
    let noted = match times {
        2.. => std::fs::write(&wanted, (times - 1).to_string()),
        _ => std::fs::write(folder.join(format!("{name}.reached")), ""),
    };
    drop(counting);
    if let Err(error) = noted {
        tracing::error!(name, %error, "a stop cannot be noted");
    }
    while times < 2 && wanted.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
}
