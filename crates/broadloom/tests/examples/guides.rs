//! Programs that the guides show. A law of `crates/tidy` finds the lines of the guides here.

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

#[test]
fn a_nesl_function_is_called() -> Result {
    use broadloom::nesl::run::Target;
    use broadloom::nesl::{Column, Program};

    let text = "function sums(rows) : [[float]] -> [float] = {sum(row) : row in rows};";
    let target = Target::new(|| broadloom::open("cpu").map_err(|error| error.to_string()));
    let mut program = Program::new(text, "sums", Default::default(), target)?;
    let rows = [Column::Ints(vec![0, 2, 2, 3]), Column::Floats(vec![1.0, 2.0, 3.5])];
    assert_eq!(program.call(&rows)?, [Column::Floats(vec![3.0, 0.0, 3.5])]);
    Ok(())
}

#[test]
fn a_nesl_session_answers() -> Result {
    use broadloom::nesl::eval::System;
    use broadloom::nesl::session::{Session, Settings};

    let mut session = Session::new(Settings::default(), Box::new(System))?;
    let outputs = session.eval("example", "{x * x : x in [1, 2, 3]};");
    assert_eq!(outputs[0].to_string().trim_end(), "it = [1, 4, 9] : [int]");
    Ok(())
}

#[test]
fn a_stream_program_runs_on_the_host_and_on_a_device() -> Result {
    use broadloom::stream::Program;
    use broadloom::stream::compiled::Compiled;
    use broadloom::stream::eval::{Limits, Memory, Settings};

    let text = "
        void->void pipeline Squares {
            add void->int filter { int n; work push 1 { push(n++); } }
            add int->int filter { work push 1 pop 1 { int x = pop(); push(x * x); } }
            add int->void filter { work pop 1 { println(pop()); } }
        }";
    let mut host = Memory::default();
    let program = Program::compile("squares.str", text, &mut host, &Limits::default())?;
    let settings = Settings { iterations: Some(4), ..Settings::default() };
    program.run(&mut host, &settings)?;
    assert_eq!(host.output, "0\n1\n4\n9\n");

    let device = broadloom::open("cpu")?;
    let mut host = Memory::default();
    Compiled::new(&program, &device)?.run(&mut host, &settings)?;
    assert_eq!(host.output, "0\n1\n4\n9\n");
    Ok(())
}

#[test]
fn a_stream_is_fed_in_pieces() -> Result {
    use broadloom::stream::Program;
    use broadloom::stream::compiled::{Compiled, Ports, Session};
    use broadloom::stream::eval::{Limits, Memory};

    let text = "float->float filter Gain(float factor) { work push 1 pop 1 { push(factor * pop()); } }";
    let program = Program::compile_stream(&[("gain.str", text)], "Gain(2.0)", &mut Memory::default(), &Limits::default())?;
    let device = broadloom::open("cpu")?;
    let compiled = Compiled::new(&program, &device)?;
    let mut ports = Ports::default();
    let mut session = Session::new(&compiled, &mut ports)?;
    for piece in [&[1.0f32, 2.0, 3.0][..], &[4.0]] {
        let output: Vec<f32> = session.feed(piece)?;
        assert_eq!(output, piece.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn a_stream_takes_buffers() -> Result {
    use broadloom::stream::Program;
    use broadloom::stream::compiled::{Compiled, Resident};
    use broadloom::stream::eval::{Limits, Memory};

    let text = "float->float filter Sum { work push 1 pop 1 peek 2 { push(peek(0) + peek(1)); pop(); } }";
    let program = Program::compile_stream(&[("sum.str", text)], "Sum", &mut Memory::default(), &Limits::default())?;
    let device = broadloom::open("cpu")?;
    let compiled = Compiled::new(&program, &device)?;
    let resident = Resident::new(&compiled)?;
    let states = 3;
    let input = device.upload(&[1.0f32, 2.0, 4.0, 8.0])?;
    let output = device.zeros::<f32>(resident.output_items(states) as usize)?;
    resident.run(&input, &output, states)?;
    resident.check()?;
    assert_eq!(output.read()?, [3.0, 6.0, 12.0]);
    Ok(())
}

#[test]
fn a_functor_is_called() -> Result {
    use broadloom::effect::functor::{Axis, Functor, Indexer, Kernel, Output, Real};
    use broadloom::effect::{Image, Picture};

    struct Dwt1d {
        axis: Axis,
        radius: u32,
    }

    impl Functor for Dwt1d {
        fn name(&self) -> String {
            "dwt1d".into()
        }
        fn inputs(&self) -> Vec<Indexer> {
            vec![Indexer::line(self.axis, self.radius)]
        }
        fn outputs(&self) -> Vec<Output> {
            vec![Output::Component, Output::Component]
        }
        fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>> {
            let (input, radius) = (k.input(0), self.radius as i32);
            let centre = input.centre();
            let high = (centre - (input.along(radius) + input.along(-radius)) * 0.5) * 0.5;
            vec![high, centre - high]
        }
    }

    let context = broadloom::graph::Context::new(&broadloom::open("cpu")?);
    let picture = Picture::new(&context, &Image::from_f32(4, 1, [("Y", vec![0.0, 8.0, 0.0, 0.0])])?)?;
    let dwt = Dwt1d { axis: Axis::Horizontal, radius: 1 }.build()?;
    let [high, low] = dwt.call([&picture])?; // nothing is computed
    let (high, low) = (high.image()?, low.image()?); // now they are
    assert_eq!((high.width(), low.width()), (4, 4));
    Ok(())
}
