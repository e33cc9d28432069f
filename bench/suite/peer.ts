/** Processes beside the suite that are told lines and answer with lines. */

/** A process that answers each line with a line. */
export interface Peer {
  readonly pid: number;
  /** Says a line, unless it is empty, and waits for the next one that comes. @throws {Error} where none came in time */
  ask(line: string): Promise<string>;
  end(): Promise<void>;
}

/** Where a process runs: the number of a core; absent: anywhere. */
export interface Pinned {
  core?: number;
}

/** Longest time for an answer, in milliseconds. */
const PATIENCE_MS = 120_000;

/** The words that keep a command on a core, where the system can do that. */
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
    async ask(line) {
      if (line !== "") await writer.write(new TextEncoder().encode(`${line}\n`));
      return await inTime(nextLine(), `${file} did not answer`);
    },
    async end() {
      child.kill("SIGKILL");
      await child.status;
      await writer.close().catch(() => {});
      await reader.cancel().catch(() => {});
    },
  };
}

/** Waits, but not for ever. @throws {Error} when the time is over */
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
