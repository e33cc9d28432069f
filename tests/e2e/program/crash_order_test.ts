import { assert, assertEquals } from "@std/assert";
import { inFolder, start } from "../../support/program.ts";
import { createLoad, ENV, writeConfig } from "./load.ts";
import { canRun, skipIf } from "../../support/skip.ts";
import { until } from "../../support/soon.ts";

/** A system call, in order of the trace. */
interface Traced {
  /** The call as strace prints it. */
  text: string;
  /** Positions in the order of the starts and ends of all calls. */
  begin: number;
  end: number;
}

/** The calls of a trace. Those of several threads interrupt each other. */
function callsIn(trace: string): Traced[] {
  const calls: Traced[] = [];
  const open = new Map<string, Traced>();
  for (const [place, line] of trace.split("\n").entries()) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(text);
    if (resumed !== null) {
      const call = open.get(thread);
      if (call !== undefined) call.end = place;
      open.delete(thread);
      continue;
    }
    const call = { text, begin: place, end: place };
    calls.push(call);
    if (text.endsWith("<unfinished ...>")) open.set(thread, Object.assign(call, { end: Infinity }));
  }
  return calls;
}

/** End of each answer by request id: with its head for whole answers, otherwise at its end mark. */
function endsOf(calls: readonly Traced[]): Map<string, Traced> {
  const ends = new Map<string, Traced>();
  /** The request that is being answered, by connection. */
  const answered = new Map<string, string>();
  for (const call of calls) {
    const [, socket = ""] = /^(?:write|writev|sendto|sendmsg)\(\d+<(TCP[^>]*>[^>]*)>/.exec(call.text) ?? [];
    if (socket === "") continue;
    const [, id] = /x-request-id: req_(\w+)/.exec(call.text) ?? [];
    if (id !== undefined) answered.set(socket, id);
    const current = answered.get(socket);
    if (current === undefined) continue;
    if (id !== undefined && /x-sluice-cost: 0\.\d/.test(call.text)) ends.set(id, call);
    if (call.text.includes("data: [DONE]")) ends.set(current, call);
  }
  return ends;
}

Deno.test({
  name: "no answer ends before its entry is synced (needs strace)",
  ignore: skipIf(!await canRun("strace", "-o", "/dev/null", "true"), "strace is not installed, or may not trace"),
  fn: () =>
    inFolder(async (folder) => {
      await using load = createLoad(Math.random);
      // Without a budget nothing is held, so that an id is written with its entry and not before.
      await writeConfig(folder, load, {});
      const file = `${folder}/trace`;
      const gateway = await start([], {
        folder,
        env: ENV,
        under: [
          "strace",
          "-D",
          "-f",
          "-yy",
          "-o",
          file,
          "-s",
          "20000",
          "-e",
          "trace=pwrite64,write,writev,sendto,sendmsg,fdatasync,fsync",
        ],
      });
      const running = load.run(gateway.origin, 8);
      const seenWhole = () => load.requests.filter(({ paid }) => paid !== undefined);
      await until("enough answers", () => seenWhole().length >= 40);
      await running.stop();
      gateway.kill("SIGTERM");
      assertEquals((await gateway.ended).code, 0);

      const calls = callsIn(await Deno.readTextFile(file));
      const isLog = ({ text }: Traced) => text.includes("sluice.db-wal>");
      const syncs = calls.filter((call) => /^f(data)?sync\(/.test(call.text) && isLog(call));
      const writes = calls.filter((call) => call.text.startsWith("pwrite64(") && isLog(call));
      const ends = endsOf(calls);
      for (const { id = "", way } of seenWhole()) {
        const end = ends.get(id);
        assert(end !== undefined, `the end of req_${id} (${way}) is not in the trace`);
        const written = writes.find(({ text }) => text.includes(id));
        assert(written !== undefined, `the entry of req_${id} is not in the trace`);
        const sync = syncs.find(({ begin }) => begin > written.end);
        assert(sync !== undefined && sync.end < end.begin, `req_${id} (${way}) ended before its entry was on the disk`);
      }
    }),
});
