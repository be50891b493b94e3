//! Reductions in two steps: filters whose firings are added up by the following filter.

use super::{agree, compile_stream, devices};
use broadloom_device::Device;
use broadloom_stream::compiled::{Compiled, Options, Resident};

/// Returns a program that counts blocks of words and adds up the counts of all blocks.
fn two_steps(count: &str, push: u32, words: u32, blocks: u32) -> String {
    let total = if push == 1 { "Sum" } else { "Total" };
    format!(
        "int->int pipeline Both {{ add Count; add {total}; }}
         int->int filter Count {{ work push {push} pop {words} {{ {count} }} }}
         int->int splitjoin Total {{
             split roundrobin(1);
             for (int i = 0; i < {push}; i++) add Sum;
             join roundrobin(1);
         }}
         int->int filter Sum {{
             work push 1 pop {blocks} {{ int sum = 0; for (int i = 0; i < {blocks}; i++) sum += pop(); push(sum); }}
         }}"
    )
}

fn bins(bins: u32, words: u32, add: &str, push: &str) -> String {
    format!(
        "int[{bins}] h; for (int i = 0; i < {words}; i++) {{ int x = pop(); {add} }} \
         for (int i = 0; i < {bins}; i++) push({push});"
    )
}

fn word(index: usize) -> u32 {
    (index as u32).wrapping_mul(0x9e37_79b1) >> 3
}

fn explained(text: &str, device: &Device, options: Options) -> String {
    Compiled::with(&compile_stream(text, "Both").unwrap(), device, options).unwrap().explain()
}

/// Both steps are one kernel that writes only totals.
#[test]
fn firings_that_are_added_up_are_one_reduction() {
    let [interp, _] = devices();
    // Rounds that use their number, many counters, few counters, and firings whose words are not a multiple
    // of a row.
    let cases = [
        (bins(256, 400, "h[x & 255] += 1; h[(x >> 8) & 255]++;", "h[i]"), 256, 400, 6),
        (bins(16, 4096, "h[(x + i) & 15] += i;", "h[i]"), 16, 4096, 8),
        (bins(16, 301, "if (x % 3 == 1) h[x & 15] += x;", "h[i]"), 16, 301, 60),
        (
            "int a = 0; int b = 0; for (int i = 0; i < 260; i++) { a += pop() % 100; b += i; } push(a); push(b);".into(),
            2,
            260,
            50,
        ),
    ];
    for (count, push, words, blocks) in cases {
        let text = two_steps(&count, push, words, blocks);
        let summary = agree(&text, "Both", 3, &word);
        assert_eq!(summary.kernels, 1, "{count}");
        let text = explained(&text, &interp, Options::default());
        assert!(text.contains("it adds up the firings of the filter before it"), "{text}");
    }
}

/// Firings whose items are not plain sums are not merged.
#[test]
fn other_firings_stay_apart() {
    let sum = |body: &str| format!("int a = 0; for (int i = 0; i < 300; i++) {{ {body} }} push(a);");
    let cases = [
        (bins(16, 300, "h[x & 15] += 1;", "h[i] * h[i]"), 16),
        (bins(16, 300, "h[x & 15] += 1;", "h[15 - i]").replace("int[16] h;", "int[16] h; int s = 0;"), 16),
        (sum("a += pop();").replace("a = 0", "a = 1"), 1),
        (sum("a = a ^ pop();"), 1),
        (sum("a += peek(i);") + " for (int i = 0; i < 300; i++) pop();", 1),
    ];
    for (count, push) in cases {
        let text = two_steps(&count, push, 300, 9);
        agree(&text, "Both", 2, &word);
        let text = explained(&text, &devices()[0], Options::default());
        assert!(!text.contains("it adds up the firings of the filter before it"), "{count}\n{text}");
    }
}

/// Counters have a copy for each lane if they are incremented often.
#[test]
fn counters_have_copies_for_lanes() {
    let [interp, cpu] = devices();
    let text = two_steps(&bins(16, 4096, "h[x & 15] += 1;", "h[i]"), 16, 4096, 8);
    assert!(explained(&text, &interp, Options::default()).contains("lanes add to 32 copies of its arrays"));
    assert!(!explained(&text, &cpu, Options::default()).contains("copies of its arrays"));
    let rarely = two_steps(&bins(256, 400, "h[x & 255] += 1;", "h[i]"), 256, 400, 30);
    assert!(!explained(&rarely, &interp, Options::default()).contains("copies of its arrays"));
}

/// Words are prefetched if threads have little to do in between, or on request. Results do not depend on
/// prefetch, nor on the address of the words.
#[test]
fn words_of_the_next_rounds_are_prefetched() {
    let [interp, cpu] = devices();
    let text = two_steps("int a = 0; for (int i = 0; i < 8192; i++) a += pop(); push(a);", 1, 8192, 4);
    assert!(explained(&text, &interp, Options::default()).contains("prefetch: yes, words of the next rounds are loaded"));
    assert!(explained(&text, &cpu, Options::default()).contains("prefetch: no, tapes are read in order"));
    let many: String = (0..10).map(|shift| format!("h[(x >> {shift}) & 63] += 1; ")).collect();
    let busy = two_steps(&bins(64, 8192, &many, "h[i]"), 64, 8192, 4);
    let told = explained(&busy, &interp, Options::default());
    assert!(told.contains("prefetch: no, the operations of the other warps"), "{told}");
    for text in [text, busy] {
        let program = compile_stream(&text, "Both").unwrap();
        for device in [&interp, &cpu] {
            let mut found = vec![];
            for prefetch in [false, true] {
                let options = Options { prefetch: Some(prefetch), ..Options::default() };
                let compiled = Compiled::with(&program, device, options).unwrap();
                // Loads before the loop and in it.
                let loads = compiled.ptx().unwrap().matches(".v4").count();
                let wanted = if device.machine().id == "cpu" { 0 } else { [2, 4][usize::from(prefetch)] };
                assert_eq!(loads, wanted, "{}", compiled.ptx().unwrap());
                let resident = Resident::new(&compiled).unwrap();
                let words: Vec<u32> = (0..resident.input_bytes(2) as usize / 4 + 1).map(word).collect();
                let input = device.upload(&words).unwrap();
                for first in [0, 1] {
                    let output = device.zeros::<u32>(resident.output_bytes(2) as usize / 4).unwrap();
                    let window = input.slice(first, words.len() - 1).unwrap();
                    resident.run(&window, &output, 2).unwrap();
                    resident.check().unwrap();
                    found.push((first, output.read().unwrap()));
                }
            }
            assert!(found[0] == found[2] && found[1] == found[3] && found[0].1 != found[1].1, "{found:?}");
        }
    }
}
