//! Tests of entries: stored, shared, damaged, refused and explained.

use super::disk::{ENDING, HEADER, MOST_ENTRY, SWEEP_EVERY};
use super::*;
use crate::private::{Folder as Private, Reason, Refusal, Secret};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("broadloom-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn cache(&self, bytes: u64) -> Cache<Vec<u8>> {
        cache_at(&self.0, bytes)
    }

    fn folder(&self) -> CacheFolder {
        CacheFolder::At(self.0.clone())
    }

    /// Returns all entries below it.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![];
        let visited = disk::visit::<()>(&Private::open(&self.0).unwrap().unwrap(), |_, shelf, named| {
            files.push(shelf.path().join(&named.name));
            Ok(())
        });
        assert_eq!(visited, Ok(vec![]));
        files.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
        files
    }

    fn file(&self, key: &Key) -> PathBuf {
        let (shelf, name) = key.names();
        self.0.join(key.device).join(shelf).join(format!("{name}.{ENDING}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn cache_at(folder: &Path, bytes: u64) -> Cache<Vec<u8>> {
    Cache::with_secret("cpu", &CacheFolder::At(folder.to_owned()), bytes, Secret::of_byte(1))
}

fn sweep(folder: &Path, most_bytes: u64) {
    disk::sweep(&Private::open(folder).unwrap().unwrap(), most_bytes);
}

const BODY: &[u8] = b"what was compiled";

fn origin(number: u8) -> Origin<'static> {
    Origin { device: "cpu", code: digest(&[number]), version: "1", machine: "avx", options: "32" }
}

fn key(number: u8) -> Key {
    Key::new(&origin(number))
}

fn find(cache: &Cache<Vec<u8>>, key: &Key) -> Result<Vec<u8>, Miss> {
    cache.find(key, 0, |body| Some((body.to_vec(), body.len()))).map(|found| found.to_vec())
}

#[test]
fn entries_are_found_again_and_broken_ones_are_not() {
    let folder = Folder::new("found");
    let key = key(1);
    assert_eq!(find(&folder.cache(1 << 20), &key), Err(Miss::Unseen));
    folder.cache(1 << 20).store(&key, BODY);
    assert_eq!(find(&folder.cache(1 << 20), &key).as_deref(), Ok(BODY));
    // In memory it stays without the file, separately for each variant.
    let cache = folder.cache(1 << 20);
    assert!(find(&cache, &key).is_ok());
    let file = folder.file(&key);
    let whole = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(find(&cache, &key).is_ok());
    assert_eq!(cache.find(&key, 1, |body| Some((body.to_vec(), 1))), Err(Miss::Unseen));
    // A damaged file is removed once found, whichever byte changed.
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        for broken in [&bytes[..], &whole[..at]] {
            fs::write(&file, broken).unwrap();
            assert_eq!(find(&folder.cache(1 << 20), &key), Err(Miss::Corrupt), "byte {at}");
            assert!(!file.exists());
        }
    }
    // So is an intact file that cannot be decoded, or that belongs to another key.
    fs::write(&file, &whole).unwrap();
    assert_eq!(folder.cache(1 << 20).find(&key, 0, |_| None), Err(Miss::Corrupt));
    assert!(!file.exists());
    let other = super::tests::key(2);
    fs::create_dir_all(folder.file(&other).parent().unwrap()).unwrap();
    fs::write(folder.file(&other), &whole).unwrap();
    assert_eq!(find(&folder.cache(1 << 20), &other), Err(Miss::Corrupt));
}

#[test]
fn a_miss_says_what_has_changed() {
    let folder = Folder::new("reasons");
    let cache = folder.cache(1 << 20);
    let made = origin(1);
    cache.store(&Key::new(&made), BODY);
    let missed = |origin: Origin<'_>| find(&cache, &Key::new(&origin)).unwrap_err();
    assert_eq!(missed(Origin { options: "64", ..made }), Miss::OtherOptions);
    assert_eq!(missed(Origin { machine: "sse", ..made }), Miss::OtherMachine);
    assert_eq!(missed(Origin { machine: "sse", options: "64", ..made }), Miss::OtherMachine);
    assert_eq!(missed(Origin { version: "2", ..made }), Miss::OtherVersion);
    assert_eq!(missed(Origin { version: "2", machine: "sse", options: "64", ..made }), Miss::OtherVersion);
    assert_eq!(missed(Origin { code: digest(b"other"), ..made }), Miss::Unseen);
    // The most similar entry explains a miss best, in any order of the files.
    cache.store(&Key::new(&Origin { version: "2", options: "64", ..made }), BODY);
    assert_eq!(missed(Origin { version: "2", ..made }), Miss::OtherOptions);
    // Nothing is known of another device.
    let cuda: Cache<Vec<u8>> = Cache::with_secret("cuda", &folder.folder(), 1 << 20, Secret::of_byte(1));
    let gpu = Key::new(&Origin { device: "cuda", ..made });
    assert_eq!(find(&cuda, &gpu), Err(Miss::Unseen));
    cuda.store(&gpu, BODY);
    assert_eq!(find(&cuda, &gpu).as_deref(), Ok(BODY));
    sweep(&folder.0, 0);
    assert_eq!(missed(made), Miss::Evicted);
    let fresh: Cache<Vec<u8>> = Cache::with_secret("cuda", &folder.folder(), 1 << 20, Secret::of_byte(1));
    assert_eq!(find(&fresh, &gpu), Err(Miss::Evicted));
}

#[test]
fn the_folder_stays_small_and_forgets_the_oldest() {
    let folder = Folder::new("bounded");
    let size = (HEADER + BODY.len()) as u64;
    let cache = folder.cache(10 * size);
    for number in 0..200u8 {
        cache.store(&key(number), BODY);
        if number == 0 {
            let old = SystemTime::now() - Duration::from_secs(1000);
            fs::File::options().append(true).open(folder.file(&key(0))).unwrap().set_modified(old).unwrap();
        }
    }
    // The folder is swept now and then, not for every file.
    assert!(folder.files().len() as u64 <= 10 + SWEEP_EVERY, "{} files", folder.files().len());
    assert!(!folder.file(&key(0)).exists());
    assert!(folder.file(&key(199)).exists());
    assert_eq!(find(&folder.cache(10 * size), &key(0)), Err(Miss::Evicted));
    // Foreign files stay, and so do unfinished files.
    let (strange, unfinished) = (folder.0.join("notes.txt"), folder.0.join("cpu/00/1-1.unfinished"));
    fs::create_dir_all(folder.0.join("cpu/00")).unwrap();
    [&strange, &unfinished].into_iter().for_each(|path| fs::write(path, "not an entry").unwrap());
    let early = folder.0.join("0123.kernel");
    fs::write(&early, "of an earlier version").unwrap();
    sweep(&folder.0, 0);
    assert!(folder.files().is_empty());
    assert_eq!([&strange, &unfinished, &early].map(|path| path.exists()), [true, true, false]);
    // The list of evicted names is bounded too.
    for round in 0..40 {
        (0..60u8).for_each(|number| cache.store(&Key::new(&Origin { options: &round.to_string(), ..origin(number) }), BODY));
        sweep(&folder.0, 0);
    }
    assert!(fs::metadata(folder.0.join("cpu/evicted")).unwrap().len() <= 72 << 10);
    assert_eq!(find(&cache, &Key::new(&Origin { options: "39", ..origin(0) })), Err(Miss::Evicted));
    assert_eq!(find(&cache, &Key::new(&Origin { options: "0", ..origin(0) })), Err(Miss::Unseen));
}

#[test]
fn memory_stays_small_and_keeps_what_is_used() {
    let cache: Cache<Vec<u8>> = Cache::new("cpu", &CacheFolder::Nowhere, 0, 100);
    for number in 0..20 {
        cache.keep(&key(number), 0, &Arc::new(vec![number]), 30);
        assert!(find(&cache, &key(0)).is_ok(), "{number}");
    }
    let kept = (0..20).filter(|number| find(&cache, &key(*number)).is_ok()).count();
    assert_eq!(kept, 3);
    cache.discard(&key(0));
    assert_eq!(find(&cache, &key(0)), Err(Miss::Disabled));
    // An entry too large for the folder is still cached in memory.
    cache.keep(&key(50), 0, &Arc::new(vec![50]), 1000);
    assert!(find(&cache, &key(50)).is_ok());
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    let folder = Folder::new("readonly");
    // A file in place of the folder: nothing can be created there, even by root.
    fs::write(&folder.0, b"").unwrap();
    let cache = folder.cache(1 << 20);
    cache.store(&key(1), BODY);
    assert_eq!(find(&cache, &key(1)), Err(Miss::Unreadable));
    cache.count(Err(Miss::Unreadable));
    drop(cache);
    fs::remove_file(&folder.0).unwrap();
    // A device that accepts no data.
    let full = cache_at(&PathBuf::from("/dev/full"), 1 << 20);
    full.store(&key(1), BODY);
    assert_eq!(find(&full, &key(1)), Err(Miss::Unreadable));
    let nowhere: Cache<Vec<u8>> = Cache::new("cpu", &CacheFolder::Nowhere, 1 << 20, 1 << 20);
    nowhere.store(&key(1), BODY);
    assert_eq!(find(&nowhere, &key(1)), Err(Miss::Disabled));
    // Too large for the folder.
    folder.cache(10).store(&key(1), BODY);
    assert_eq!(find(&folder.cache(10), &key(1)), Err(Miss::Unseen));
}

#[test]
fn what_is_found_is_counted_and_cleared() {
    let folder = Folder::new("counted");
    for round in 0..3 {
        let cache = folder.cache(1 << 20);
        for number in 0..2u8 {
            let outcome = find(&cache, &key(number)).map(drop);
            cache.count(outcome);
            if outcome.is_err() {
                cache.store(&key(number), BODY);
            }
        }
        assert_eq!(cache.counts().found, if round == 0 { 0 } else { 2 });
    }
    let cuda: Cache<Vec<u8>> = Cache::with_secret("cuda", &folder.folder(), 1 << 20, Secret::of_byte(1));
    cuda.store(&Key::new(&Origin { device: "cuda", ..origin(0) }), BODY);
    let contents = folder.folder().contents().unwrap();
    let [cpu, gpu] = &contents.devices[..] else { panic!("{contents:?}") };
    assert_eq!((cpu.device, cpu.entries, cpu.bytes), ("cpu", 2, 2 * (HEADER + BODY.len()) as u64));
    assert_eq!((cpu.counts.found, cpu.counts.missed(Miss::Unseen), cpu.counts.all_missed()), (4, 2, 2));
    assert_eq!((gpu.device, gpu.entries, gpu.counts), ("cuda", 1, Counts::default()));
    // One device, then all; foreign files stay.
    fs::write(folder.0.join("cpu/notes.txt"), "not ours").unwrap();
    assert_eq!(folder.folder().clear(Some("cpu")).unwrap().unwrap().entries(), 2);
    let left = folder.folder().contents().unwrap();
    assert_eq!((left.entries(), left.devices[0].counts), (1, Counts::default()));
    assert_eq!(folder.folder().clear(None).unwrap().unwrap().entries(), 1);
    assert_eq!(folder.folder().contents().unwrap().entries(), 0);
    assert!(folder.0.join("cpu/notes.txt").exists());
    assert_eq!(CacheFolder::Nowhere.contents(), None);
    // Invalid counts are replaced.
    fs::write(folder.0.join("cpu/counts"), b"found many\nunseen \xff\n").unwrap();
    let cache = folder.cache(1 << 20);
    cache.count(Ok(()));
    drop(cache);
    assert_eq!(folder.folder().contents().unwrap().devices[0].counts.found, 1);
}

const CHILD: &str = "BROADLOOM_CACHE_CHILD";

#[test]
fn processes_share_a_folder() {
    if let Some(folder) = std::env::var_os(CHILD) {
        // One of several processes: it writes and reads the same entries as the others, and never sees a
        // partial one.
        for round in 0..150u8 {
            let cache = cache_at(&PathBuf::from(&folder), 1 << 20);
            let key = key(round % 75);
            let outcome = find(&cache, &key);
            cache.count(outcome.as_ref().map(drop).map_err(|miss| *miss));
            match outcome {
                Ok(found) => assert_eq!(found, BODY),
                Err(Miss::Unseen) => cache.store(&key, BODY),
                Err(other) => panic!("{other}"),
            }
        }
        return;
    }
    let folder = Folder::new("shared");
    let program = std::env::current_exe().unwrap();
    let name = "cache::tests::processes_share_a_folder";
    let start = || Command::new(&program).args([name, "--exact", "--quiet"]).env(CHILD, &folder.0).spawn().unwrap();
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let contents = folder.folder().contents().unwrap();
    assert_eq!(contents.entries(), 75, "{contents:?}");
    let counts = contents.devices[0].counts;
    // Counts are lost while the folder does not exist.
    assert!((440..=450).contains(&(counts.found + counts.all_missed())), "{counts:?}");
    (0..75).for_each(|number| assert!(find(&folder.cache(1 << 20), &key(number)).is_ok()));
}

/// A user that is neither root nor this one.
const STRANGER: u32 = 54_321;

/// Tests if files can be given to another user here, and reports if not.
fn can_give_away() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: only root can make files of another user");
    }
    is_root
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Tests that a spoilt entry, or a folder on the path to it, is not used and is reported with the reason,
/// without further harm.
fn refused(name: &str, at: fn(&Folder, &Key) -> PathBuf, spoil: impl Fn(&Path), reason: Reason) {
    let folder = Folder::new(name);
    let key = key(1);
    folder.cache(1 << 20).store(&key, BODY);
    assert_eq!(find(&folder.cache(1 << 20), &key).as_deref(), Ok(BODY));
    let opened = folder.cache(1 << 20);
    let _ = find(&opened, &Key::new(&Origin { options: "none", ..origin(1) }));
    let path = at(&folder, &key);
    spoil(&path);
    for cache in [folder.cache(1 << 20), opened] {
        assert_eq!(find(&cache, &key), Err(Miss::Untrusted), "{name}");
    }
    let refused = folder.folder().contents().unwrap().refused;
    assert!(refused.contains(&Refusal { path: path.clone(), reason }), "{name}: {refused:?}");
    let told = refused.iter().find(|refusal| refusal.path == path).unwrap();
    assert!(told.to_string().starts_with(&format!("{}: ", path.display())) && !told.help().is_empty());
    // A file is replaced when the code is compiled again; nothing is written to a foreign folder.
    folder.cache(1 << 20).store(&key, b"made again");
    let after = find(&folder.cache(1 << 20), &key);
    if path == folder.file(&key) {
        assert_eq!(after.as_deref(), Ok(&b"made again"[..]), "{name}");
    } else {
        assert_eq!(after, Err(Miss::Untrusted), "{name}");
    }
}

fn the_file(folder: &Folder, key: &Key) -> PathBuf {
    folder.file(key)
}

fn the_shelf(folder: &Folder, key: &Key) -> PathBuf {
    folder.file(key).parent().unwrap().to_owned()
}

fn the_folder(folder: &Folder, _: &Key) -> PathBuf {
    folder.0.clone()
}

#[test]
fn what_others_can_write_is_not_used() {
    for mode in [0o620, 0o602, 0o666] {
        refused("writable-file", the_file, |path| chmod(path, mode), Reason::Writable(mode));
    }
    for mode in [0o770, 0o707, 0o1777] {
        refused("writable-shelf", the_shelf, |path| chmod(path, mode), Reason::Writable(mode));
        refused("writable-folder", the_folder, |path| chmod(path, mode), Reason::Writable(mode));
    }
}

#[test]
fn what_belongs_to_others_is_not_used() {
    if !can_give_away() {
        return;
    }
    for (name, at) in
        [("given-file", the_file as fn(&Folder, &Key) -> PathBuf), ("given-shelf", the_shelf), ("given", the_folder)]
    {
        refused(name, at, |path| chown(path, Some(STRANGER), None).unwrap(), Reason::Owner(STRANGER));
    }
}

#[test]
fn links_fifos_and_hard_links_are_not_followed() {
    let link = |path: &Path| {
        let moved = path.with_extension("moved");
        fs::rename(path, &moved).unwrap();
        symlink(moved, path).unwrap();
    };
    refused("link-file", the_file, link, Reason::Link);
    refused("link-shelf", the_shelf, link, Reason::Link);
    let folder_moved = std::env::temp_dir().join(format!("broadloom-cache-link-folder-{}.moved", std::process::id()));
    refused("link-folder", the_folder, link, Reason::Link);
    let _ = fs::remove_file(std::env::temp_dir().join(format!("broadloom-cache-link-folder-{}", std::process::id())));
    fs::remove_dir_all(folder_moved).unwrap();
    let fifo = |path: &Path| {
        fs::remove_file(path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    refused("fifo", the_file, fifo, Reason::Kind("a FIFO, not a regular file"));
    let hard = |path: &Path| fs::hard_link(path, path.with_extension("second")).unwrap();
    refused("hard", the_file, hard, Reason::HardLinks(2));
    let huge = |path: &Path| fs::File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
    let folder = Folder::new("huge");
    folder.cache(1 << 20).store(&key(1), BODY);
    huge(&folder.file(&key(1)));
    assert_eq!(find(&folder.cache(1 << 20), &key(1)), Err(Miss::Untrusted));
    fs::File::options().write(true).open(folder.file(&key(1))).unwrap().set_len(MOST_ENTRY + 1).unwrap();
    assert_eq!(find(&folder.cache(1 << 20), &key(1)), Err(Miss::Untrusted));
    // Notes are files as well.
    let (counts, evicted) = (folder.0.join("cpu/counts"), folder.0.join("cpu/evicted"));
    let target = folder.0.join("target");
    fs::write(&target, "evicted\n").unwrap();
    symlink(&target, &counts).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &evicted, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    let cache = folder.cache(1 << 20);
    assert_eq!(find(&cache, &key(7)), Err(Miss::Unseen));
    cache.count(Err(Miss::Unseen));
    drop(cache);
    assert_eq!(fs::read_to_string(&target).unwrap(), "evicted\n");
}

#[test]
fn code_of_another_user_is_broken() {
    let (own, other) = (Folder::new("own"), Folder::new("other"));
    let key = key(1);
    let theirs: Cache<Vec<u8>> = Cache::with_secret("cpu", &other.folder(), 1 << 20, Secret::of_byte(2));
    theirs.store(&key, b"their code");
    own.cache(1 << 20).store(&key, BODY);
    fs::copy(other.file(&key), own.file(&key)).unwrap();
    assert_eq!(find(&own.cache(1 << 20), &key), Err(Miss::Corrupt));
    // The tag covers the whole entry: neither body nor key can be exchanged.
    own.cache(1 << 20).store(&key, BODY);
    let mut entry = fs::read(own.file(&key)).unwrap();
    let digest = blake3::hash(BODY);
    entry[HEADER - 32..HEADER].copy_from_slice(digest.as_bytes());
    fs::write(own.file(&key), &entry).unwrap();
    assert_eq!(find(&own.cache(1 << 20), &key), Err(Miss::Corrupt));
}

#[test]
fn without_a_secret_nothing_is_kept() {
    let folder = Folder::new("secretless");
    let Some(missing) = std::env::var_os(CHILD) else {
        // The secret is read once per process, so each case is a process.
        let state = Folder::new("secretless-state");
        Private::create(&state.0.join("broadloom")).unwrap();
        let name = "cache::tests::without_a_secret_nothing_is_kept";
        let run = |reason: &str, state: &Path| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([name, "--exact", "--quiet"]).env(CHILD, reason).env("XDG_STATE_HOME", state);
            assert!(command.status().unwrap().success(), "{reason}");
        };
        run("none", &state.0);
        let secret = state.0.join("broadloom/secret");
        let facts = fs::metadata(&secret).unwrap();
        assert_eq!((facts.len(), facts.permissions().mode() & 0o777), (32, 0o600));
        chmod(&secret, 0o640);
        run("others can read it", &state.0);
        chmod(&secret, 0o600);
        fs::write(&secret, b"short").unwrap();
        run("it has 5 bytes", &state.0);
        fs::remove_file(&secret).unwrap();
        symlink("/etc/hostname", &secret).unwrap();
        run("symbolic link", &state.0);
        chmod(&state.0, 0o777);
        run("others can write to it", &state.0);
        return;
    };
    let reason = missing.to_str().unwrap();
    let cache: Cache<Vec<u8>> = Cache::new("cpu", &folder.folder(), 1 << 20, 1 << 20);
    cache.store(&key(1), BODY);
    let cache: Cache<Vec<u8>> = Cache::new("cpu", &folder.folder(), 1 << 20, 1 << 20);
    let refused = folder.folder().contents().unwrap().refused;
    if reason == "none" {
        assert_eq!((find(&cache, &key(1)).as_deref(), refused.len()), (Ok(BODY), 0));
    } else {
        assert_eq!(find(&cache, &key(1)), Err(Miss::Untrusted));
        assert!(!folder.0.exists() && refused[0].to_string().contains(reason), "{refused:?}");
    }
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    let folder = Folder::new("umask");
    let Some(mask) = std::env::var_os(CHILD) else {
        for mask in ["0", "777", "22"] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["cache::tests::modes_do_not_depend_on_the_umask", "--exact", "--quiet"]).env(CHILD, mask);
            assert!(command.status().unwrap().success(), "{mask}");
        }
        return;
    };
    let mask = u32::from_str_radix(mask.to_str().unwrap(), 8).unwrap();
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(mask));
    let cache = folder.cache(1 << 20);
    cache.store(&key(1), BODY);
    cache.count(Ok(()));
    drop(cache);
    sweep(&folder.0, 0);
    folder.cache(1 << 20).store(&key(1), BODY);
    Secret::at(&folder.0.join("state")).unwrap();
    rustix::process::umask(rustix::fs::Mode::empty());
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let (shelf, file) = (the_shelf(&folder, &key(1)), folder.file(&key(1)));
    assert_eq!([folder.0.clone(), folder.0.join("cpu"), shelf, folder.0.join("state")].map(mode), [0o700; 4]);
    let notes = ["cpu/counts", "cpu/evicted", "state/secret"].map(|name| folder.0.join(name));
    assert_eq!([vec![file], notes.to_vec()].concat().into_iter().map(mode).collect::<Vec<_>>(), [0o600; 4]);
}

#[test]
fn clearing_follows_no_link() {
    let (folder, other) = (Folder::new("cleared"), Folder::new("cleared-other"));
    folder.cache(1 << 20).store(&key(1), BODY);
    other.cache(1 << 20).store(&key(1), BODY);
    let shelf = the_shelf(&folder, &key(1));
    fs::remove_dir_all(&shelf).unwrap();
    symlink(the_shelf(&other, &key(1)), &shelf).unwrap();
    assert_eq!(folder.folder().clear(None).unwrap_err().path, shelf);
    sweep(&folder.0, 0);
    assert!(other.file(&key(1)).exists());
    let link = Folder::new("cleared-link");
    symlink(&other.0, &link.0).unwrap();
    assert_eq!(link.folder().clear(None).unwrap_err().reason, Reason::Link);
    assert!(other.file(&key(1)).exists());
    fs::remove_file(&link.0).unwrap();
}
