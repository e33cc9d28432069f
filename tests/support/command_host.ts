/**
 * Runs commands of the program one after the other in this process: each line of standard input is a command. Each line
 * of standard output is its result; a gateway writes its own output instead, which `END` and its code end on both
 * streams. Starting a process takes longer than most commands.
 */
import { TextLineStream } from "@std/streams";
import { main } from "../../lib/cli/main.ts";
import { routes } from "../../routes/manifest.ts";
import { END, type Ended } from "./program.ts";

/** One command with its folder, environment and input. */
export interface HostedCommand {
  args: readonly string[];
  folder: string;
  env: Readonly<Record<string, string>>;
  input: string;
  /** True for a gateway, whose output is read while it runs. */
  isGateway?: boolean;
}

const answer = Deno.stdout.writeSync.bind(Deno.stdout);
const encoder = new TextEncoder();

/** Runs a gateway to its end. */
async function serve(command: HostedCommand): Promise<void> {
  // A gateway looks for changes of its configuration since its process has started.
  Object.defineProperty(performance, "timeOrigin", { configurable: true, value: Date.now() });
  const code = await runMain(command);
  for (const stream of [Deno.stdout, Deno.stderr]) stream.writeSync(encoder.encode(`${END}${code}\n`));
}

/** Runs a command, and collects its output. */
async function run(command: HostedCommand): Promise<Ended> {
  const decoders = { out: new TextDecoder(), err: new TextDecoder() };
  const writes: { stream: "out" | "err"; text: string }[] = [];
  const ended = { code: 0, out: "", err: "", writes };
  const collect = (stream: "out" | "err") => (bytes: Uint8Array) => {
    const text = decoders[stream].decode(bytes, { stream: true });
    ended[stream] += text;
    writes.push({ stream, text });
    return bytes.length;
  };
  Object.assign(Deno.stdout, { writeSync: collect("out") });
  Object.assign(Deno.stderr, { writeSync: collect("err") });
  ended.code = await runMain(command);
  return ended;
}

async function runMain({ args, folder, env, input }: HostedCommand): Promise<number> {
  const before = Deno.env.toObject();
  Object.defineProperty(Deno, "stdin", {
    configurable: true,
    value: { readable: new Response(input).body, isTerminal: () => false },
  });
  Deno.chdir(folder);
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  try {
    return await main(args, () => Promise.resolve({ routes }));
  } finally {
    for (const name of Object.keys(env)) Deno.env.delete(name);
    for (const [name, value] of Object.entries(before)) Deno.env.set(name, value);
    Deno.chdir("/");
  }
}

if (import.meta.main) {
  const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream());
  for await (const line of lines) {
    const command: HostedCommand = JSON.parse(line);
    if (command.isGateway) await serve(command);
    else answer(encoder.encode(`${JSON.stringify(await run(command))}\n`));
  }
}
