import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { type Ended, inFolder, type Place, reuseGateways, reuseProcess, run } from "../support/program.ts";
import { eventually } from "../support/soon.ts";
import { startBilled } from "./billed_gateway.ts";

reuseProcess();
reuseGateways();

const NOTE = (member: string) => `The configuration has mistakes; this command uses only member "${member}"\n`;
const ADVICE = "To use this command before the configuration is correct, name the store with --store\n";

Deno.test("a mistake in the configuration does not stop commands that need only the store", () =>
  inFolder(async (folder) => {
    const gateway = await startBilled(folder);
    const id = await gateway.ask();
    await gateway.stop();
    await Deno.rename(`${folder}/data/sluice.db`, `${folder}/data/other.db`);
    const mistake = { store: "sqlite:./data/other.db", groups: { team: { models: 5 } } };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(mistake));
    // A mistake in another variable does not matter either.
    const env = { SLUICE_PORT: "none", SLUICE_ADMIN_PORT: "1" };
    for (
      const [args, expected] of [
        [["explain", id], "Model:        acme/assistant\n"],
        [["requests"], id],
        [["audit"], "No differences found\n"],
        [["keys", "disable", "ci"], 'Key "ci"'],
        [["keys", "enable", "ci"], 'Key "ci"'],
        [["keys", "rotate", "ci", "--overlap", "0s"], "sk-"],
        [["keys", "revoke", "ci"], 'Key "ci"'],
        [["keys", "export"], gateway.keyId],
        [["usage"], "ci"],
        [["backup", "./copy.db"], ""],
      ] as const
    ) {
      const { code, out, err } = await run(args, { folder, env });
      assertEquals(code, 0, err);
      assertStringIncludes(out, expected);
      assertMatch(err, /^SLUICE_PORT: .*\n/);
      assertStringIncludes(err, `groups.team.models: Expected an array, not 5\n${NOTE("store")}`);
    }
    const other = await run(["keys", "list"], { folder });
    assertEquals([other.code, other.out, other.err], [
      1,
      "",
      "sluice.jsonc:1:53: groups.team.models: Expected an array, not 5\n",
    ]);
  }));

Deno.test("a mistake in models does not stop commands that need only groups and keys", () =>
  inFolder(async (folder) => {
    const file = { groups: { team: { key_budget: { usd: "7", period: "day" } } }, models: 5 };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(file));
    for (
      const [args, expected] of [
        [["keys", "add", "ci", "--group", "team", "--models", "acme/*"], "sk-"],
        [["keys", "change", "ci", "--rpm", "60"], "60 requests per minute"],
        [["keys", "list"], "0/7 per day"],
        [["keys", "show", "ci"], "0 of 7 USD per day"],
        [["budgets"], "key    ci    team   day"],
      ] as const
    ) {
      const { code, out, err } = await run(args, { folder });
      assertEquals(code, 0, err);
      assertStringIncludes(out, expected);
      assertMatch(
        err,
        /^sluice\.jsonc:1:\d+: models: .*\nThe configuration has mistakes; .* members "store", "groups", "keys"\n(?!Warning)/,
      );
    }
    assertEquals((await run(["usage", "--by", "upstream"], { folder })).code, 1);
    assertStringIncludes((await run(["keys", "add", "x", "--group", "none"], { folder })).err, 'unknown group "none"');
  }));

Deno.test("a configuration that cannot be parsed names no store", () =>
  inFolder(async (folder) => {
    const gateway = await startBilled(folder);
    const id = await gateway.ask();
    await gateway.stop();
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "store": "sqlite:./data/oth');
    const refused = await run(["explain", id], { folder });
    assertEquals([refused.code, refused.out], [1, ""]);
    assertMatch(refused.err, /^sluice\.jsonc:1:\d+: .*\n/);
    assertStringIncludes(refused.err, ADVICE);
    const named = await run(["explain", id, "--store", "sqlite:./data/sluice.db"], { folder });
    assertEquals(named.code, 0, named.err);
    assertStringIncludes(named.out, "Model:        acme/assistant\n");
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "store": "mysql:here" }');
    assertStringIncludes((await run(["explain", id], { folder })).err, ADVICE);
  }));

async function assertAlive(place: Place): Promise<Ended> {
  const ended = await run(["health"], place);
  assertEquals(ended.code, 0, ended.err);
  return ended;
}

Deno.test("health finds the running gateway although its configuration has mistakes since", () =>
  inFolder(async (folder) => {
    const gateway = await startBilled(folder);
    const { port } = new URL(gateway.origin);
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, `{ "listen": { "port": ${port} }, "groups": 5 }`);
    // It waits for four seconds, in which a busy machine may not answer.
    const alive = await eventually(() => assertAlive({ folder }));
    assertEquals(alive.out, `The gateway at ${gateway.origin}/healthz is alive\n`);
    assertStringIncludes(alive.err, NOTE("listen"));
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, `{ "listen": { "po`);
    const half = await eventually(() => assertAlive({ folder, env: { SLUICE_PORT: port } }));
    assertEquals(half.out, alive.out);
    assertStringIncludes(half.err, "this command uses only flags, environment variables and defaults\n");
    await gateway.stop();
    assertEquals((await run(["health"], { folder, env: { SLUICE_PORT: port } })).code, 1);
  }));
