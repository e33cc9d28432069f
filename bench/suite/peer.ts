/** Helper processes that answer each line of input with a line of output. */

/** A process that answers each line with a line. */
export interface Peer {
  readonly pid: number;
  /**
   * Writes a line, unless it is empty, and waits for the next line.
   * @param patienceMs absent: two minutes
   * @throws {Error} if none comes in time
   */
  ask(line: string, patienceMs?: number): Promise<string>;
  end(): Promise<void>;
}

/** Number of the core that a process is pinned to; absent: none. */
export interface Pinned {
  core?: number;
}

/** Longest time for an answer, in milliseconds. */
const PATIENCE_MS = 120_000;

/** The prefix of a command that pins it to a core, if the system supports that. */
export function pinning({ core }: Pinned): string[] {
  return core === undefined ? [] : ["taskset", "-c", String(core)];
}

/** Starts a file of this folder. */
export function startPeer(file: string, pinned: Pinned = {}): Peer {
  const path = new URL(file, import.meta.url).pathname;
  const [program = "", ...args] = [...pinning(pinned), Deno.execPath(), "run", "--quiet", "--no-check", "-A", path];
  const child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped", env: { NO_COLOR: "1" } }).spawn();
  const writer = child.stdin.getWriter();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";

  async function nextLine(): Promise<string> {
    while (!text.includes("\n")) {
      const { value } = await reader.read();
      if (value === undefined) throw new Error(`Cannot wait for ${file}: it has ended`);
      text += value;
    }
    const end = text.indexOf("\n");
    const line = text.slice(0, end);
    text = text.slice(end + 1);
    return line;
  }

  return {
    pid: child.pid,
    async ask(line, patienceMs) {
      if (line !== "") await writer.write(new TextEncoder().encode(`${line}\n`));
      return await inTime(nextLine(), `${file} did not answer`, patienceMs);
    },
    async end() {
      child.kill("SIGKILL");
      await child.status;
      await writer.close().catch(() => {});
      await reader.cancel().catch(() => {});
    },
  };
}

/** Answers each line of input with a line of JSON until the input ends: the other side of a `Peer`. */
export async function answerLines(answer: (line: string) => unknown): Promise<void> {
  let text = "";
  for await (const piece of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      await writeLine(await answer(line));
    }
  }
}

/** Writes a value to standard output as a line of JSON. */
export async function writeLine(value: unknown): Promise<void> {
  const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
  for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
}

/** Waits with a time limit. @throws {Error} when the time is over */
export async function inTime<T>(work: Promise<T>, otherwise: string, ms: number = PATIENCE_MS): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
