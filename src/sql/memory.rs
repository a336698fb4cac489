//! How much memory queries may use when the configuration does not say.

use std::path::Path;

/// Share of the container's or machine's memory, in percent (SE-33).
const SHARE: u64 = 70;
/// When nothing can be found out.
const FALLBACK: u64 = 2 << 30;

/// Bytes for running queries: 70 % of the smaller of the container's limit and the machine's memory.
pub(super) fn default_limit() -> u64 {
    let machine = read("/proc/meminfo").and_then(|text| total_memory(&text));
    let limits = [container_limit(), machine];
    let least = limits.into_iter().flatten().min().unwrap_or(FALLBACK);
    least / 100 * SHARE
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// `MemTotal` in bytes.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The limit of the control group of this process, or of one above it.
fn container_limit() -> Option<u64> {
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            c if c.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        for folder in Path::new(path).ancestors() {
            let folder = folder.strip_prefix("/").unwrap_or(folder);
            limits.extend(read(Path::new(root).join(folder).join(file)).and_then(|text| limit_of(&text)));
        }
    }
    limits.into_iter().min()
}

/// `None` for `max` and for the huge numbers that stand for no limit.
fn limit_of(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes > 0 && *bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_texts_are_read() {
        assert_eq!(
            total_memory("MemTotal:       24611768 kB\nMemFree: 1 kB\n"),
            Some(24_611_768 * 1024)
        );
        assert_eq!(limit_of("536870912\n"), Some(536_870_912));
        assert_eq!(limit_of("max\n"), None);
        assert_eq!(limit_of("9223372036854771712\n"), None);
        assert!(default_limit() > 0);
    }
}
