/**
 * Runs commands of the program one after the other in this process: each line of standard input is a command, each line
 * of standard output its result. Starting a process takes longer than most commands.
 */
import { TextLineStream } from "@std/streams";
import { main } from "../../lib/cli/main.ts";
import { routes } from "../../routes/manifest.ts";
import type { Ended } from "./program.ts";

/** One command with its folder, environment and input. */
export interface HostedCommand {
  args: readonly string[];
  folder: string;
  env: Readonly<Record<string, string>>;
  input: string;
}

const answer = Deno.stdout.writeSync.bind(Deno.stdout);
const encoder = new TextEncoder();

async function run({ args, folder, env, input }: HostedCommand): Promise<Ended> {
  const before = Deno.env.toObject();
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
  Object.defineProperty(Deno, "stdin", {
    configurable: true,
    value: { readable: new Response(input).body, isTerminal: () => false },
  });
  Deno.chdir(folder);
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  try {
    ended.code = await main(args, () => Promise.resolve({ routes }));
  } finally {
    for (const name of Object.keys(env)) Deno.env.delete(name);
    for (const [name, value] of Object.entries(before)) Deno.env.set(name, value);
    Deno.chdir("/");
  }
  return ended;
}

if (import.meta.main) {
  const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream());
  for await (const line of lines) answer(encoder.encode(`${JSON.stringify(await run(JSON.parse(line)))}\n`));
}
