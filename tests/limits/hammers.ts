/** Processes that hammer a limit, seen from the test. */
import { assertEquals } from "@std/assert";
import type { Orders } from "./hammer.ts";

/** An output line of a process. */
export interface HammerLine {
  id?: string;
  begun?: number;
  taken?: number;
  ended?: number;
  /** Number of refusals so far, each hundred times. */
  refused?: number;
}

/** A hammering process, and its output so far. */
export interface Hammer {
  reports: HammerLine[];
  kill(signal: Deno.Signal): void;
  /** Ends it after its open requests. */
  end(): Promise<void>;
  status: Promise<Deno.CommandStatus>;
}

/** Starts one. */
export async function startHammer(orders: Orders): Promise<Hammer> {
  const script = new URL("hammer.ts", import.meta.url).pathname;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-all", script, JSON.stringify(orders)],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reports: HammerLine[] = [];
  const ready = Promise.withResolvers<void>();
  const reading = (async () => {
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) reports.push(JSON.parse(line));
      ready.resolve();
    }
  })();
  await ready.promise;
  return {
    reports,
    kill: (signal) => child.kill(signal),
    async end() {
      await child.stdin.close().catch(() => {});
      await reading;
      assertEquals((await child.status).code, 0);
    },
    status: child.status.then(async (status) => {
      await reading;
      await child.stdin.close().catch(() => {});
      return status;
    }),
  };
}
