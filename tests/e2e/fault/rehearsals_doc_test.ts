import { assert, assertEquals, assertMatch } from "@std/assert";
import { parseJsonc } from "../../../lib/config/jsonc.ts";
import { type FaultKind, FAULTS } from "../../../lib/fault/faults.ts";
import { isObject, type JsonObject } from "../../../lib/json/mod.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { startServer } from "../../fault/start_server.ts";

const GUIDE = await Deno.readTextFile(new URL("../../../docs/reference/faults.md", import.meta.url));

/** The configurations of the guide, in its order. */
function configurations(): JsonObject[] {
  return [...GUIDE.matchAll(/```jsonc\n([^]*?)```/g)].map(([, block = ""]) => {
    const file = parseJsonc(block);
    assert(isObject(file));
    return file;
  });
}

async function ask(gateway: TestGateway, model: string, content: string): Promise<{ status: number; text: string }> {
  const response = await gateway.ask("chat", { model, stream: true, messages: [{ role: "user", content }] });
  return { status: response.status, text: await response.text() };
}

Deno.test("the guide lists every fault, and which of them the embedded model has", () => {
  const rows = GUIDE.split("\n").filter((line) => line.startsWith("| `"));
  for (const [name, { wire = false }] of Object.entries<FaultKind>(FAULTS)) {
    const row = rows.find((line) => new RegExp(`\`${name}(-after)?(:[^\`]+)?\``).test(line.split("|")[1] ?? ""));
    assertMatch(row ?? `${name} is missing`, wire ? /\| no +\|$/ : /\| yes +\|$/);
  }
});

Deno.test("the guide's embedded model fails over before the first event, and never after it", async () => {
  const [file] = configurations();
  assert(file !== undefined);
  await using gateway = startGateway({ ...file, embedded_models: false });
  for (const content of ["status:503", "error-after:0", "refuse", "cut"]) {
    const { status, text } = await ask(gateway, "rehearsal/one", content);
    assertEquals(status, 200);
    // The echo model repeats the prompt.
    assert(text.includes("[DONE]") && !text.includes("wörd"), text);
  }
  for (const content of ["error-after:5", "cut-after:5"]) {
    const { status, text } = await ask(gateway, "rehearsal/one", content);
    assertEquals(status, 200);
    assert(text.includes("wörd 5") && text.includes('"error":{') && !text.includes("[DONE]"), text);
  }
});

Deno.test("the guide's fault server works as an upstream", async () => {
  const [, file] = configurations();
  assert(file !== undefined);
  await using server = startServer();
  const text = JSON.stringify(file).replace("http://127.0.0.1:8795", server.url);
  await using gateway = startGateway(JSON.parse(text));
  assert((await ask(gateway, "rehearsal/two", "Hello")).text.includes("wörd 10"));
  assertEquals((await ask(gateway, "rehearsal/two", "status:429")).status, 429);
});

Deno.test("the fault model exists only if a row names it", async () => {
  await using gateway = startGateway({});
  assert(gateway.gateway.catalog.models.every(({ targets }) => targets.every(({ model }) => model !== "fault")));
});

Deno.test("a disconnect ends an endless answer and a silence", async () => {
  const [file] = configurations();
  assert(file !== undefined);
  await using gateway = startGateway(file);
  for (const content of ["endless", "stall-after:2", "slow:1s"]) {
    const response = await gateway.ask("chat", {
      model: "rehearsal/one",
      stream: true,
      messages: [{ role: "user", content }],
    });
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
  }
  // Whatever still went on would be found by the test's own sanitizers, and by this.
  await gateway.gateway.backgroundTasks.done();
});
