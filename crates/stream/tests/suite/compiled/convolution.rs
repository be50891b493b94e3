//! Long convolutions by the fast Fourier transform.

use super::{FAST, compile, devices};
use broadloom_device::Device;
use broadloom_stream::compiled::Compiled;
use broadloom_stream::eval::{Memory, Settings};

/// Returns a program with small noise as input, and with one infinite item if `strange` is set.
fn program(filters: &str, strange: bool) -> String {
    let strange = if strange { "if (n == 700) x = x * 1e38 * 1e38;" } else { "" };
    format!(
        "void->float filter Source {{
            int n;
            work push 1 {{ float x = ((n * 7919) % 1000) / 500.0 - 1.0; {strange} push(x); n++; }}
        }}
        float->float filter Fir(int N, float c) {{
            float[N] h;
            init {{ for (int i = 0; i < N; i++) h[i] = sin(0.1 * (i + 1)) / (i + 1); }}
            work push 1 pop 1 peek N {{ float s = c; for (int i = 0; i < N; i++) s += h[i] * peek(i); push(s); pop(); }}
        }}
        float->float filter Pairs(int N) {{
            work push 2 pop 2 peek N + 1 {{
                for (int k = 0; k < 2; k++) {{ float s = 0; for (int i = 0; i < N; i++) s += peek(k + i) / (i + 2); push(s); }}
                pop(); pop();
            }}
        }}
        float->float filter Absolute {{ work push 1 pop 1 {{ push(abs(pop())); }} }}
        float->void filter Printer {{ work pop 1 {{ println(pop()); }} }}
        void->void pipeline Top {{ add Source(); {filters} add FileWriter<float>(\"out\"); }}"
    )
}

/// Runs a program on the evaluator and on a device. Returns the number of convolutions that were transformed.
fn transformed(text: &str, device: &Device) -> usize {
    let program = compile(text);
    let settings = Settings { iterations: Some(1500), ..Settings::default() };
    let numbers = |memory: &Memory| -> Vec<f32> {
        let files = memory.files.lock().unwrap();
        files["out"].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    let (mut expected, mut found) = (Memory::default(), Memory::default());
    program.run(&mut expected, &settings).unwrap();
    let compiled = Compiled::with(&program, device, FAST).unwrap();
    compiled.run(&mut found, &settings).unwrap();
    assert!(compiled.statistics().states > 500 && compiled.statistics().handed_back == 0);
    let (expected, found) = (numbers(&expected), numbers(&found));
    assert_eq!(expected.len(), found.len());
    let finite = expected.iter().filter(|one| one.is_finite());
    let most = finite.fold(0.0f32, |most, one| most.max(one.abs()));
    for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let equal = (expected - found).abs() <= 1e-5 * most || (!expected.is_finite() && !found.is_finite());
        assert!(equal, "item {index}: {found} instead of {expected}");
    }
    compiled.explain().matches("convolution by FFT: yes").count()
}

#[test]
fn long_convolutions_are_transformed() {
    for device in devices() {
        assert_eq!(transformed(&program("add Fir(300, 0);", false), &device), 1);
        assert_eq!(transformed(&program("add Fir(700, 0.25);", false), &device), 1);
        assert_eq!(transformed(&program("add Fir(1900, 0.25);", false), &device), 1);
        assert_eq!(transformed(&program("add Fir(64, 0);", false), &device), 0);
        // Two filters are one convolution.
        assert_eq!(transformed(&program("add Fir(150, 0); add Fir(151, 0.5);", false), &device), 1);
        // The first filter computes the items that the second peeks beyond the batch.
        assert_eq!(transformed(&program("add Fir(200, 0); add Absolute(); add Fir(300, 0);", false), &device), 2);
        // One firing pushes several items, each shifted by one place.
        assert_eq!(transformed(&program("add Pairs(201);", false), &device), 1);
    }
}

#[test]
fn infinities_reach_as_far_as_the_coefficients() {
    for device in devices() {
        assert_eq!(transformed(&program("add Fir(300, 0);", true), &device), 1);
    }
}

/// Sums close to 0 would show different rounding.
#[test]
fn what_is_printed_is_added_up() {
    let text = program("add Fir(300, 0);", false).replace("FileWriter<float>(\"out\")", "Printer()");
    for device in devices() {
        let program = compile(&text);
        let compiled = Compiled::with(&program, &device, FAST).unwrap();
        assert_eq!(compiled.explain().matches("convolution by FFT: yes").count(), 0);
    }
}
