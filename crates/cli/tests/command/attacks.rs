//! Tests of shared machines: folders that others can write to, unwritable caches, invalid environment
//! variables.

use crate::harness::{Outcome, root, shell};
use broadloom::device::private::Temporary;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn stats_name_what_is_not_used() {
    let temporary = Temporary::new("broadloom-command-attacks").unwrap();
    let folder = temporary.path().join("cache");
    let call = |words: &str| shell(&format!("BROADLOOM_CACHE={} broadloom {words}", folder.display()));
    let run = || {
        let words = "run examples/saxpy.ptx --arg f32:1 --arg f32[2]:1,2 --arg f32[2]:zero --arg u32:2 --block 2 --stats";
        call(words).exits(0).out
    };
    assert!(run().contains("; not in the cache: never seen before"));
    assert!(run().contains("from the cache in "));
    assert!(!call("cache stats").exits(0).out.contains("not used"));
    chmod(&folder, 0o777);
    assert!(run().contains("; not in the cache: others could write to the folder or the file"));
    let name = folder.display();
    call("cache stats").exits(0).says(&[
        "not used:\n",
        &format!("  {name}: others can write to it (mode 0777)\n"),
        &format!("      run `chmod go-w {name}`"),
    ]);
    call("cache clear").exits(3).says(&["others can write to it (mode 0777)", "chmod go-w"]);
    chmod(&folder, 0o700);
    assert!(run().contains("from the cache in "));
    // A FIFO in place of an entry has no writer: reading it would block forever.
    let shelf = fs::read_dir(folder.join("cpu")).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap();
    let file = fs::read_dir(shelf.path()).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&file).unwrap();
    shell(&format!("mkfifo -m 600 {}", file.display())).exits(0);
    call("cache stats").exits(0).says(&[&format!("  {}: it is a FIFO, not a regular file\n      remove it\n", file.display())]);
    assert!(run().contains("; not in the cache: others could write"));
    assert!(run().contains("from the cache in "));
    // Nothing is cached if there is no location for the secret. The reason is reported.
    let outcome = shell(&format!("BROADLOOM_CACHE={name} XDG_STATE_HOME=/dev/null broadloom cache stats"));
    outcome.exits(0).says(&["not used:\n  /dev/null: it is not a folder\n"]);
}

/// Returns the folder on the search path of a program.
fn folder_of(outcome: &Outcome) -> PathBuf {
    let line = outcome.out.lines().last().unwrap_or_default();
    PathBuf::from(line.split(':').next().unwrap())
}

#[test]
fn programs_find_the_library_wherever_nothing_can_be_written() {
    let temporary = Temporary::new("broadloom-command-exec").unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let (name, file) = (temporary.path().display(), file.display());
    for variables in [
        format!("BROADLOOM_CACHE={name}/cache"),
        format!("BROADLOOM_CACHE=off TMPDIR={name}"),
        format!("BROADLOOM_CACHE={file} TMPDIR={name}"),
        format!("BROADLOOM_CACHE=/proc/no-folder TMPDIR={name}"),
        format!("BROADLOOM_CACHE={name}/with:colon TMPDIR={name}"),
        format!("BROADLOOM_CACHE=off TMPDIR=/proc XDG_STATE_HOME={name}/state"),
    ] {
        let outcome = shell(&format!("{variables} broadloom exec -- sh -c 'echo $LD_LIBRARY_PATH'")).exits(0);
        let folder = folder_of(&outcome);
        assert!(folder.starts_with(temporary.path()) && folder.join("libcuda.so.1").is_file(), "{variables}: {}", outcome.out);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
    // If the name in the temporary folder belongs to another user, another name is used.
    let taken = temporary.path().join("taken");
    fs::create_dir(&taken).unwrap();
    chmod(&taken, 0o1777);
    let user = fs::read_dir(temporary.path()).unwrap().flatten().map(|entry| entry.file_name());
    let user = user.filter_map(|name| name.into_string().ok()).find(|name| name.starts_with("broadloom-")).unwrap();
    fs::write(taken.join(user), "").unwrap();
    let variables = format!("BROADLOOM_CACHE=off XDG_STATE_HOME=/proc TMPDIR={}", taken.display());
    let outcome = shell(&format!("{variables} broadloom exec -- sh -c 'echo $LD_LIBRARY_PATH'")).exits(0);
    assert!(folder_of(&outcome).join("libcuda.so.1").is_file(), "{}", outcome.out);
    shell("BROADLOOM_CACHE=off XDG_STATE_HOME=/proc TMPDIR=/proc broadloom exec -- true")
        .exits(3)
        .says(&["there is no folder for the stand-in: "]);
}

#[test]
fn a_library_that_somebody_dropped_is_not_on_the_search_path() {
    let temporary = Temporary::new("broadloom-command-dropped").unwrap();
    let name = temporary.path().display();
    let run = || shell(&format!("BROADLOOM_CACHE={name}/cache TMPDIR={name} broadloom exec -- sh -c 'echo $LD_LIBRARY_PATH'"));
    let folder = folder_of(&run().exits(0));
    assert!(folder.starts_with(temporary.path().join("cache")));
    assert_eq!(folder_of(&run().exits(0)), folder);
    fs::write(folder.join("libc.so.6"), "an attack").unwrap();
    let outcome = run().exits(0).says(&["not used: ", "/libc.so.6: Broadloom did not put it"]);
    assert!(!folder_of(&outcome).starts_with(temporary.path().join("cache")), "{}", outcome.out);
    let stats = shell(&format!("BROADLOOM_CACHE={name}/cache broadloom cache stats"));
    stats.exits(0).says(&["/libc.so.6: Broadloom did not put it", "      remove it\n"]);
}

#[test]
fn variables_that_make_no_sense_are_told() {
    for (variable, takes) in [
        ("BROADLOOM_THREADS=lots", "a number of threads from 1 to 4096"),
        ("BROADLOOM_THREADS=0", "a number of threads"),
        ("BROADLOOM_MEMORY_LIMIT=4apples", "a number of bytes above 0"),
        ("BROADLOOM_CUDA_CAPABILITY=x", "a compute capability"),
        ("BROADLOOM_CUDA_LEVEL=9", "a level of optimisation from 0 to 4"),
        ("BROADLOOM_CUDA_SYNC=maybe", "`1` or `on`, `0` or `off`"),
        ("BROADLOOM_CHECK=maybe", "`1` or `on`, `0` or `off`"),
        ("BROADLOOM_STRICT_BARRIERS=maybe", "`1` or `on`, `0` or `off`"),
        ("BROADLOOM_QUIET=maybe", "`1` or `on`, `0` or `off`"),
        ("BROADLOOM_TIME_LIMIT=soon", "a number of seconds"),
    ] {
        let (name, value) = variable.split_once('=').unwrap();
        let line = format!("{name} is `{value}`, and it takes {takes}");
        shell(&format!("{variable} broadloom devices")).exits(2).says(&[&line, &format!("correct {name} or unset it")]);
    }
    shell("BROADLOOM_CUDART=/no/such/library.so broadloom exec -- true")
        .exits(2)
        .says(&["BROADLOOM_CUDART is `/no/such/library.so`"]);
    let no_library = root().join("examples/saxpy.ptx");
    shell(&format!("BROADLOOM_CUDART={} broadloom exec -- true", no_library.display()))
        .exits(2)
        .says(&["saxpy.ptx`, which cannot be used: it is no library; it takes the path of libbroadloom_cudart.so"]);
    shell("BROADLOOM_TRACE=/no/such/trace.json broadloom exec -- true")
        .exits(2)
        .says(&["BROADLOOM_TRACE is `/no/such/trace.json`", "it takes the path of a file in an existing folder"]);
    shell("BROADLOOM_DEVICE=toaster broadloom exec -- true").exits(2).says(&["`toaster`", "there is `cpu`, `cpu:strict`"]);
    shell("BROADLOOM_CPU=z80 broadloom devices").exits(2).says(&["BROADLOOM_CPU=z80: no CPU `z80` is known; known are x86-64, "]);
    shell("BROADLOOM_THREADS= BROADLOOM_CUDA_SYNC= broadloom devices").exits(0);
}
