// SPDX-License-Identifier: PostgreSQL
//! Processes that stop where a test wants: at instructions of a library that they have loaded, as under a
//! debugger. While one is stopped, the test reads or changes the data that it shares with others, and then lets
//! it continue. Therefore anything that may happen between two stores of a session does happen, each time, and
//! without a line in the product.
//!
//! Only for x86-64, and if processes may be traced. Otherwise a test prints a message and passes.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

use object::{Object, ObjectSymbol, SymbolKind};

/// INT3.
const TRAP: u8 = 0xCC;
/// Where the kernel has the registers of a process (struct user of x86-64).
const RDI: usize = 14 * 8;
const RIP: usize = 16 * 8;
const RSP: usize = 19 * 8;

/// A function of the library.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: String,
    /// The source file; empty for functions that other files call.
    pub file: String,
    /// In the process.
    pub address: u64,
    pub size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
    /// It has ended, with this status.
    Over(i32),
}

/// A process under control of this thread. Dropping it lets the process continue by itself.
pub struct Stepped {
    pid: i32,
    memory: File,
    functions: Vec<Function>,
    /// Where it stops, and the byte that was there.
    points: BTreeMap<u64, u8>,
    state: State,
    /// It is stopped here, and has not executed the instruction.
    at: Option<u64>,
    /// The kernel knows one thread as the tracer.
    _of_this_thread: PhantomData<*const ()>,
}

impl Stepped {
    /// Takes control of a process that has loaded a library with this file name. Prints the reason and returns
    /// `None` if it cannot.
    pub fn attach(pid: i32, library: &str) -> Option<Stepped> {
        if cfg!(not(target_arch = "x86_64")) || super::emulated() {
            println!("not tested: processes are stepped on x86-64 only");
            return None;
        }
        if let Err(error) = trace(libc::PTRACE_SEIZE, pid, 0, 0) {
            println!("not tested: process {pid} cannot be traced: {error}");
            return None;
        }
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"));
        let mut stepped = Stepped {
            pid,
            memory: memory.unwrap(),
            functions: functions_of(pid, library),
            points: BTreeMap::new(),
            state: State::Running,
            at: None,
            _of_this_thread: PhantomData,
        };
        stepped.interrupt();
        Some(stepped)
    }

    /// The library's functions for which this holds.
    pub fn functions(&self, which: impl Fn(&Function) -> bool) -> Vec<Function> {
        let found: Vec<Function> =
            self.functions.iter().filter(|function| which(function)).cloned().collect();
        assert!(!found.is_empty(), "the library has no such function");
        found
    }

    /// The function with this instruction.
    pub fn function_at(&self, address: u64) -> &Function {
        let has = |function: &&Function| {
            (function.address..function.address + function.size.max(1)).contains(&address)
        };
        self.functions.iter().find(has).expect("an address of the library")
    }

    /// Only while it is stopped: from now on, it stops at these instructions and at no others.
    pub fn stop_at(&mut self, addresses: impl IntoIterator<Item = u64>) {
        self.clear().unwrap();
        for address in addresses {
            let mut byte = [0];
            self.memory.read_exact_at(&mut byte, address).unwrap();
            self.memory.write_all_at(&[TRAP], address).unwrap();
            self.points.insert(address, byte[0]);
        }
    }

    fn clear(&mut self) -> std::io::Result<()> {
        let points = std::mem::take(&mut self.points);
        points.into_iter().try_for_each(|(at, byte)| self.memory.write_all_at(&[byte], at))
    }

    /// Runs `work`, which makes the process do something, in another thread. Each time the process stops,
    /// `stopped` is called with the address. Returns when the work is done and the process has ended or waits for
    /// more, with it under control.
    pub fn during<T: Send>(
        &mut self,
        work: impl FnOnce() -> T + Send,
        mut stopped: impl FnMut(&mut Stepped, u64),
    ) -> T {
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            let looked = catch_unwind(AssertUnwindSafe(|| {
                self.resume(0);
                let mut last = Instant::now();
                while !(working.is_finished() && self.rests()) {
                    if let Some(address) = self.stop() {
                        stopped(self, address);
                        self.resume(0);
                        last = Instant::now();
                    } else {
                        assert!(last.elapsed() < super::PATIENCE, "the process does not go on");
                        std::thread::sleep(Duration::from_micros(20));
                    }
                }
                self.interrupt();
            }));
            if looked.is_err() {
                // The working thread waits for the process.
                self.release();
            }
            let done = working.join();
            looked.unwrap_or_else(|panic| resume_unwind(panic));
            done.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Only while it is stopped at the entry of a function: executes the function to its end, and calls `each`
    /// with every address on the way, including those of the functions that it calls.
    pub fn step_through(&mut self, mut each: impl FnMut(u64)) {
        let points: Vec<u64> = self.points.keys().copied().collect();
        self.clear().unwrap();
        let frame = self.register(RSP);
        while matches!(self.state, State::Stopped) && self.register(RSP) <= frame {
            each(self.register(RIP));
            self.step();
        }
        self.at = None;
        if self.state == State::Stopped {
            self.stop_at(points);
            // It would stop at its current position.
            let here = self.register(RIP);
            self.at = self.points.contains_key(&here).then_some(here);
        }
    }

    /// At a function's entry, where the process is stopped: the first argument.
    pub fn argument(&self) -> u64 {
        self.register(RDI)
    }

    /// Stops only at this instruction, starting from the current position.
    pub fn stop_next_at(&mut self, address: u64) {
        self.stop_at([address]);
        let here = self.register(RIP);
        self.at = (here == address).then_some(here);
    }

    /// Bytes of its memory.
    pub fn read<const N: usize>(&self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, address).unwrap();
        bytes
    }

    fn register(&self, which: usize) -> u64 {
        // SAFETY: reads a register of a process that is stopped and traced by this thread; writes no memory of ours.
        unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, self.pid, which, 0) as u64 }
    }

    /// It waits for messages in epoll_wait, or has ended.
    fn rests(&self) -> bool {
        let of = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.pid));
        match self.state {
            State::Running => of("syscall").is_ok_and(|text| {
                text.split(' ').next() == Some(&libc::SYS_epoll_wait.to_string())
            }),
            State::Stopped => false,
            State::Over(_) => true,
        }
    }

    /// The point that it has reached. Other reasons to stop are ignored.
    fn stop(&mut self) -> Option<u64> {
        let status = self.wait(libc::WNOHANG)?;
        let signal = status >> 8 & 0xFF;
        if status >> 16 != 0 {
            self.resume(0);
            return None;
        }
        if signal == libc::SIGTRAP && self.is_at_point() {
            return self.at;
        }
        self.resume(if signal == libc::SIGTRAP { 0 } else { signal });
        None
    }

    /// It was stopped by a trap; checks whether it is one of ours.
    fn is_at_point(&mut self) -> bool {
        let address = self.register(RIP) - 1;
        let ours = self.points.contains_key(&address);
        if ours {
            trace(libc::PTRACE_POKEUSER, self.pid, RIP, address as usize).unwrap();
            self.at = Some(address);
        }
        ours
    }

    /// Its state: the status of a stop; `None` if there is none yet, or if it has ended.
    fn wait(&mut self, flags: i32) -> Option<i32> {
        if matches!(self.state, State::Over(_)) {
            return None;
        }
        let mut status = 0;
        // SAFETY: `status` is valid for the call, which writes nothing else.
        let found = unsafe { libc::waitpid(self.pid, &raw mut status, flags | libc::__WALL) };
        if found != self.pid {
            assert!(found == 0, "process {}: {}", self.pid, std::io::Error::last_os_error());
            return None;
        }
        if !libc::WIFSTOPPED(status) {
            self.state = State::Over(status);
            return None;
        }
        self.state = State::Stopped;
        Some(status)
    }

    /// Executes one instruction. Signals that arrive meanwhile are sent again afterwards; one that the
    /// instruction raises is delivered.
    fn step(&mut self) {
        let mut signals = Vec::new();
        loop {
            trace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0).unwrap();
            let Some(status) = self.wait(0) else { return };
            match status >> 8 & 0xFF {
                _ if status >> 16 != 0 => {}
                libc::SIGTRAP => break,
                signal @ (libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE) => {
                    self.go(signal);
                    return;
                }
                signal => signals.push(signal),
            }
        }
        for signal in signals {
            // SAFETY: no memory is involved; the process is stopped, so the pid is still its own.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    fn resume(&mut self, signal: i32) {
        if let Some(address) = self.at.take() {
            let byte = self.points[&address];
            self.memory.write_all_at(&[byte], address).unwrap();
            self.step();
            if self.state != State::Stopped {
                return;
            }
            self.memory.write_all_at(&[TRAP], address).unwrap();
        }
        if self.state == State::Stopped {
            self.go(signal);
        }
    }

    fn go(&mut self, signal: i32) {
        self.state = State::Running;
        // A process that is killed at this moment has ended; the next wait reports that.
        let _ = trace(libc::PTRACE_CONT, self.pid, 0, signal as usize);
    }

    /// Stops it wherever it is.
    fn interrupt(&mut self) {
        while self.state == State::Running {
            let _ = trace(libc::PTRACE_INTERRUPT, self.pid, 0, 0);
            let Some(status) = self.wait(0) else { return };
            let signal = status >> 8 & 0xFF;
            if status >> 16 == 0 && !(signal == libc::SIGTRAP && self.is_at_point()) {
                self.go(signal);
            }
        }
    }

    fn release(&mut self) {
        self.interrupt();
        if self.state == State::Stopped {
            // A process that was killed meanwhile has no memory.
            let _ = self.clear();
            let _ = trace(libc::PTRACE_DETACH, self.pid, 0, 0);
            self.state = State::Over(0);
        }
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        self.release();
    }
}

fn trace(request: libc::c_uint, pid: i32, address: usize, data: usize) -> std::io::Result<()> {
    // SAFETY: of the requests that are used here none writes to memory of this process; address and data are numbers.
    let result = unsafe { libc::ptrace(request, pid, address, data) };
    if result == -1 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// The functions of a library in a process, including local ones.
fn functions_of(pid: i32, library: &str) -> Vec<Function> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mapped = maps.lines().find_map(|line| {
        let (addresses, path) = (line.split('-').next()?, &line[line.find('/')?..]);
        (path.rsplit('/').next() == Some(library)).then_some((addresses, path))
    });
    let (address, path) = mapped.unwrap_or_else(|| panic!("process {pid} has no {library}"));
    let base = u64::from_str_radix(address, 16).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let (mut functions, mut file) = (Vec::new(), String::new());
    for symbol in elf.symbols() {
        let name = symbol.name().unwrap_or_default();
        match symbol.kind() {
            SymbolKind::File => file = name.into(),
            SymbolKind::Text if symbol.address() != 0 => functions.push(Function {
                name: name.into(),
                file: if symbol.is_local() { file.clone() } else { String::new() },
                address: base + symbol.address(),
                size: symbol.size(),
            }),
            _ => {}
        }
    }
    functions
}
