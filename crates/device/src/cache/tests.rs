//! Entries that are kept, shared, broken, refused and explained.

use super::disk::{ENDING, HEADER, SWEEP_EVERY, sweep};
use super::*;
use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A folder of its own, removed when dropped.
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

    /// All files below it that are entries.
    fn files(&self) -> Vec<PathBuf> {
        let files = disk::files(&self.0).unwrap_or_default();
        files
            .into_iter()
            .map(|(_, path, _)| path)
            .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
            .collect()
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

fn cache_at(folder: &std::path::Path, bytes: u64) -> Cache<Vec<u8>> {
    Cache::new("cpu", &CacheFolder::At(folder.to_owned()), bytes, 1 << 20)
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
    // In memory it stays without the file, for each variant by itself.
    let cache = folder.cache(1 << 20);
    assert!(find(&cache, &key).is_ok());
    let file = folder.file(&key);
    let whole = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(find(&cache, &key).is_ok());
    assert_eq!(cache.find(&key, 1, |body| Some((body.to_vec(), 1))), Err(Miss::Unseen));
    // A broken file is gone once it was met, whichever byte it is that changed.
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        for broken in [&bytes[..], &whole[..at]] {
            fs::write(&file, broken).unwrap();
            assert_eq!(find(&folder.cache(1 << 20), &key), Err(Miss::Corrupt), "byte {at}");
            assert!(!file.exists());
        }
    }
    // So is what is whole and cannot be decoded, and what belongs to another key.
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
    // What is nearest explains it best, whichever comes first in the folder.
    cache.store(&Key::new(&Origin { version: "2", options: "64", ..made }), BODY);
    assert_eq!(missed(Origin { version: "2", ..made }), Miss::OtherOptions);
    // Of another device nothing is known.
    let cuda: Cache<Vec<u8>> = Cache::new("cuda", &folder.folder(), 1 << 20, 1 << 20);
    let gpu = Key::new(&Origin { device: "cuda", ..made });
    assert_eq!(find(&cuda, &gpu), Err(Miss::Unseen));
    cuda.store(&gpu, BODY);
    assert_eq!(find(&cuda, &gpu).as_deref(), Ok(BODY));
    sweep(&folder.0, 0);
    assert_eq!(missed(made), Miss::Evicted);
    let fresh: Cache<Vec<u8>> = Cache::new("cuda", &folder.folder(), 1 << 20, 1 << 20);
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
    // It is looked over now and then, not at every file.
    assert!(folder.files().len() as u64 <= 10 + SWEEP_EVERY, "{} files", folder.files().len());
    assert!(!folder.file(&key(0)).exists());
    assert!(folder.file(&key(199)).exists());
    assert_eq!(find(&folder.cache(10 * size), &key(0)), Err(Miss::Evicted));
    // What is not ours stays, and so does what is being written.
    let (strange, unfinished) = (folder.0.join("notes.txt"), folder.0.join("cpu/00/1-1.unfinished"));
    fs::create_dir_all(folder.0.join("cpu/00")).unwrap();
    [&strange, &unfinished].into_iter().for_each(|path| fs::write(path, "not an entry").unwrap());
    let early = folder.0.join("0123.kernel");
    fs::write(&early, "of an earlier version").unwrap();
    sweep(&folder.0, 0);
    assert!(folder.files().is_empty());
    assert_eq!([&strange, &unfinished, &early].map(|path| path.exists()), [true, true, false]);
    // Names of what had to go do not pile up either.
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
    // What is too large alone is still of use to who made it.
    cache.keep(&key(50), 0, &Arc::new(vec![50]), 1000);
    assert!(find(&cache, &key(50)).is_ok());
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    let folder = Folder::new("readonly");
    // A file where the folder should be: nothing can be created there, whoever asks.
    fs::write(&folder.0, b"").unwrap();
    let cache = folder.cache(1 << 20);
    cache.store(&key(1), BODY);
    assert_eq!(find(&cache, &key(1)), Err(Miss::Unreadable));
    cache.count(Err(Miss::Unreadable));
    drop(cache);
    fs::remove_file(&folder.0).unwrap();
    // A device whose files take nothing.
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
    let cuda: Cache<Vec<u8>> = Cache::new("cuda", &folder.folder(), 1 << 20, 1 << 20);
    cuda.store(&Key::new(&Origin { device: "cuda", ..origin(0) }), BODY);
    let contents = folder.folder().contents().unwrap().unwrap();
    let [cpu, gpu] = &contents.devices[..] else { panic!("{contents:?}") };
    assert_eq!((cpu.device, cpu.entries, cpu.bytes), ("cpu", 2, 2 * (HEADER + BODY.len()) as u64));
    assert_eq!((cpu.counts.found, cpu.counts.missed(Miss::Unseen), cpu.counts.all_missed()), (4, 2, 2));
    assert_eq!((gpu.device, gpu.entries, gpu.counts), ("cuda", 1, Counts::default()));
    // One device, then all; what is not ours stays.
    fs::write(folder.0.join("cpu/notes.txt"), "not ours").unwrap();
    assert_eq!(folder.folder().clear(Some("cpu")).unwrap().unwrap().entries(), 2);
    let left = folder.folder().contents().unwrap().unwrap();
    assert_eq!((left.entries(), left.devices[0].counts), (1, Counts::default()));
    assert_eq!(folder.folder().clear(None).unwrap().unwrap().entries(), 1);
    assert_eq!(folder.folder().contents().unwrap().unwrap().entries(), 0);
    assert!(folder.0.join("cpu/notes.txt").exists());
    assert_eq!(CacheFolder::Nowhere.contents().unwrap(), None);
    // Counts that are no counts are begun anew.
    fs::write(folder.0.join("cpu/counts"), b"found many\nunseen \xff\n").unwrap();
    let cache = folder.cache(1 << 20);
    cache.count(Ok(()));
    drop(cache);
    assert_eq!(folder.folder().contents().unwrap().unwrap().devices[0].counts.found, 1);
}

const CHILD: &str = "BROADLOOM_CACHE_CHILD";

#[test]
fn processes_share_a_folder() {
    if let Some(folder) = std::env::var_os(CHILD) {
        // One of several processes: writes and reads the same entries as the others, and never sees half of one.
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
    let contents = folder.folder().contents().unwrap().unwrap();
    assert_eq!(contents.entries(), 75, "{contents:?}");
    let counts = contents.devices[0].counts;
    // Before the folder is there nothing can be counted in it.
    assert!((440..=450).contains(&(counts.found + counts.all_missed())), "{counts:?}");
    (0..75).for_each(|number| assert!(find(&folder.cache(1 << 20), &key(number)).is_ok()));
}
