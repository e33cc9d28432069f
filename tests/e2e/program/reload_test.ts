import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { inFolder, type RunningWithKey, startWithKey } from "../../support/program.ts";
import { eventually } from "../../support/soon.ts";
import { plainModel } from "../../support/plain_model.ts";

function fileWith(name: string): string {
  return JSON.stringify({
    models: [plainModel({ id: `acme/${name}` })],
  });
}

async function modelsOf({ origin, key }: RunningWithKey): Promise<string> {
  const response = await fetch(`${origin}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  return await response.text();
}

/** A shell that writes the log to a file, which can be read while the gateway runs. */
const LOGGED = ["/bin/sh", "-c", 'exec "$@" 2>log', "sh"] as const;

async function eventsOf(folder: string): Promise<Record<string, string>[]> {
  const log = await Deno.readTextFile(`${folder}/log`);
  return log.slice(0, log.lastIndexOf("\n") + 1).trimEnd().split("\n").map((line) => JSON.parse(line));
}

Deno.test("a file change applies without a signal, however it was written, and an invalid one changes nothing", () =>
  inFolder(async (folder) => {
    const file = `${folder}/sluice.jsonc`;
    await Deno.writeTextFile(file, fileWith("first"));
    const gateway = await startWithKey([], { folder, under: LOGGED });
    const ways: [name: string, write: (text: string) => Promise<void>][] = [
      ["written", (text) => Deno.writeTextFile(file, text)],
      ["renamed", async (text) => {
        await Deno.writeTextFile(`${folder}/.swap`, text);
        await Deno.rename(`${folder}/.swap`, file);
      }],
      ["removed-first", async (text) => {
        await Deno.remove(file);
        await Deno.writeTextFile(file, text);
      }],
      ["in-pieces", async (text) => {
        await Deno.writeTextFile(file, text.slice(0, 50));
        await new Promise((resolve) => setTimeout(resolve, 30));
        await Deno.writeTextFile(file, text.slice(50), { append: true });
      }],
    ];
    for (const [name, write] of ways) {
      await write(fileWith(name));
      await eventually(async () => assertStringIncludes(await modelsOf(gateway), `acme/${name}`));
    }
    await Deno.writeTextFile(file, '{ "models": [{}] }');
    gateway.kill("SIGHUP");
    await eventually(async () => {
      const problems = (await eventsOf(folder)).map(({ event, problem }) => `${event} ${problem}`);
      const isRefused = (line: string) => /^reload_refused sluice\.jsonc:1:\d+: models\[0\]\.id: Missing/.test(line);
      assert(problems.some(isRefused), problems.join("\n"));
    });
    assert((await modelsOf(gateway)).includes("acme/in-pieces"));
    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
    const reloads = (await eventsOf(folder)).filter(({ event }) => event === "reloaded");
    assertEquals(reloads.map(({ version }) => Number(version)), [2, 3, 4, 5]);
  }));
