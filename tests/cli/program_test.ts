import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  HAS_TERMINAL,
  inFolder,
  reuseGateways,
  reuseProcess,
  run,
  type Running,
  start,
  startAtTerminal,
  startReused,
} from "../support/program.ts";
import { findProgram, skipIf } from "../support/skip.ts";
import { eventually } from "../support/soon.ts";

reuseProcess();
reuseGateways();

const ROOT = new URL("../../", import.meta.url).pathname;
const HELLO = { model: "sluice/echo", messages: [{ role: "user", content: "Hello" }] };

function keyIn(text: string): string {
  return /sk-sluice-[A-Za-z0-9_-]{49}/.exec(text)?.[0] ?? "";
}

async function chat({ origin }: Pick<Running, "origin">, key: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(HELLO),
  });
  const body = await response.json();
  return { status: response.status, text: body.choices?.[0]?.message.content ?? "" };
}

async function status({ origin }: Pick<Running, "origin">, key: string): Promise<number> {
  const response = await fetch(`${origin}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.status;
}

Deno.test({
  name: "the first start at a terminal prints a working key, later starts do not" +
    (!HAS_TERMINAL ? " (needs script, of util-linux)" : ""),
  ignore: !HAS_TERMINAL,
  fn: () =>
    inFolder(async (folder) => {
      const first = await startAtTerminal(folder);
      const key = keyIn(first.banner);
      assertMatch(first.origin, /^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
      assertStringIncludes(first.banner, `curl ${first.origin}/v1/chat/completions`);
      assertEquals(await chat(first, key), { status: 200, text: "Hello" });
      assertEquals(await status(first, `${key}0`), 401);
      assertEquals((await first.interrupt()).code, 0);

      const second = await startReused(["serve"], { folder });
      assertEquals(keyIn(second.banner), "");
      assertStringIncludes(second.banner, 'API key "default" exists since');
      assertStringIncludes(second.banner, `npx -y deno@2.9.6 run -A ${ROOT}main.ts keys add NAME\n`);
      assertEquals((await chat(second, key)).status, 200);
      second.kill("SIGINT");
      const ended = await second.ended;
      assertEquals([ended.code, ended.err.includes(key)], [0, false]);
      for (const line of ended.err.trimEnd().split("\n")) JSON.parse(line);

      for await (const { name } of Deno.readDir(`${folder}/data`)) {
        const bytes = await Deno.readFile(`${folder}/data/${name}`);
        assertEquals(new TextDecoder("latin1").decode(bytes).includes(key.slice(10, 30)), false, name);
      }
    }),
});

Deno.test("a first start without a terminal creates no key, and its command for one works from another folder", {
  ignore: skipIf(findProgram("sh") === undefined, "sh is not installed"),
}, () =>
  inFolder(async (folder) => {
    const first = await start([], { folder });
    const command = `cd ${folder} && npx -y deno@2.9.6 run -A ${ROOT}main.ts keys add NAME`;
    assertEquals(
      first.banner,
      `Sluice listens on ${first.origin}\n\nNo API key is in use\nAdd a key: ${command}\n\n`,
    );
    const real = command.replace("npx -y deno@2.9.6 run -A", '"$DENO" run -A --no-check').replace("NAME", "first");
    const added = await new Deno.Command("sh", { args: ["-c", real], cwd: "/", env: { DENO: Deno.execPath() } })
      .output();
    assertEquals([added.code, await status(first, keyIn(new TextDecoder().decode(added.stdout)))], [0, 200]);
    const { port } = new URL(first.origin);
    const under: [string, string] = ["env", "HTTP_PROXY=http://127.0.0.1:1"];
    for (const place of [{ folder }, { folder, under }]) {
      await eventually(async () => assertEquals((await run(["health", "--port", port], place)).code, 0));
    }
    first.kill("SIGTERM");
    const { code, out, err } = await first.ended;
    assertEquals([code, keyIn(out + err)], [0, ""]);
    assertMatch((await run(["keys", "list"], { folder })).out, /^ID .*\n.* first .*\n$/);
    const health = await run(["health", "--port", port], { folder });
    assertEquals([health.code, health.err], [1, `No gateway answers at ${first.origin}/healthz\n`]);
  }));

Deno.test("keys add, list and revoke print what they did and why they failed", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "groups": { "ops": {} } }');
    const added = await run(["keys", "add", "ci", "--group", "ops"], { folder });
    assertMatch(added.err, /^Added key "ci" \(key_\S+\) to group "ops"/);
    const refused: [string[], string][] = [
      [["keys", "add", "ci"], 'Cannot add a key "ci": another key has this name\n'],
      [
        ["keys", "add", "x", "--group", "nobody"],
        'Cannot add a key "x": unknown group "nobody"; known: ops, default\n',
      ],
      [["keys", "revoke", "nobody"], 'Cannot revoke key "nobody": there is no key with this name or id\n'],
      [["keys", "list", "--store", "memory:"], 'Cannot read the store: it is "memory:"'],
    ];
    for (const [args, line] of refused) {
      const { code, out, err } = await run(args, { folder });
      assertEquals([code, out, err.startsWith(line)], [1, "", true], err);
    }
    const [listed] = JSON.parse((await run(["keys", "list", "--json"], { folder })).out);
    assertEquals([listed.name, listed.group, listed.state], ["ci", "ops", "active"]);
    assertEquals((await run(["keys", "revoke", listed.id], { folder })).out, `Key "ci" (${listed.id}) is revoked\n`);
    const again = await run(["keys", "enable", listed.id], { folder });
    assertEquals([again.code, again.err], [1, `Cannot enable key "${listed.id}": it is revoked\n`]);
    const { out } = await run(["keys", "list"], { folder });
    assertMatch(
      out,
      /^ID +NAME +GROUP +STATE +CREATED +EXPIRES +LAST USED +SPENT\/BUDGET USD\nkey_\S+ +ci +ops +revoked +\d{4}-\S+Z +never +never +-\n$/,
    );
  }));

Deno.test("keys add and change warn about rules that match nothing, and apply them", () =>
  inFolder(async (folder) => {
    const added = await run(["keys", "add", "ci", "--models", "sluice/echo,nope/x"], { folder });
    assertEquals(added.code, 0);
    assertMatch(
      added.err,
      /^Warning: models\[1\]: "nope\/x" matches no model: correct it, or remove it\nAdded key "ci"/,
    );
    assertMatch(added.out, /^sk-\S+\n$/);
    const changed = await run(["keys", "change", "ci", "--models", "nope/*"], { folder });
    assertMatch(changed.err, /^Warning: models: It allows no model that group "default" may use: list some of them\n$/);
    assertEquals([changed.code, (await run(["keys", "change", "ci", "--rpm", "5", "--models", "*"], { folder })).err], [
      0,
      "",
    ]);
  }));

Deno.test("a running gateway applies new rules, expiry and rotation of a key at the next request", () =>
  inFolder(async (folder) => {
    const gateway = await startReused([], { folder });
    const models = async (key: string): Promise<string[] | number> => {
      const response = await fetch(`${gateway.origin}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      const body = await response.json();
      return response.ok ? body.data.map(({ id }: { id: string }) => id) : response.status;
    };
    const change = async (...flags: string[]) => {
      const { code, out, err } = await run(["keys", "change", "ci", ...flags], { folder });
      assertEquals([code, err], [0, ""], flags.join(" "));
      return out;
    };
    const first = keyIn((await run(["keys", "add", "ci", "--models", "sluice/*"], { folder })).out);
    assertEquals(await models(first), ["sluice/echo", "sluice/canvas", "sluice/embed", "sluice/rerank"]);
    assertStringIncludes(await change("--models", "*/canvas", "--expires", "1d"), "models:      */canvas\n");
    assertEquals(await models(first), ["sluice/canvas"]);
    await change("--models", "unset", "--endpoints", "models,chat");
    assertEquals(await models(first), ["sluice/echo"]);
    await change("--endpoints", "unset", "--ips", "192.0.2.1");
    assertEquals(await models(first), 403);
    await change("--ips", "unset", "--expires", "unset");
    assertEquals(await models(first), ["sluice/echo", "sluice/canvas", "sluice/embed", "sluice/rerank"]);

    const second = keyIn((await run(["keys", "rotate", "ci"], { folder })).out);
    assertEquals([await models(first), await models(second)].map(Array.isArray), [true, true]);
    const third = keyIn((await run(["keys", "rotate", "ci", "--overlap", "0s"], { folder })).out);
    assertEquals([await models(first), await models(second)], [401, 401]);
    assertEquals(Array.isArray(await models(third)), true);

    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
    const shown = JSON.parse((await run(["keys", "show", "ci", "--json"], { folder })).out);
    const used = Date.now() - Date.parse(shown.last_used_at);
    assertEquals([used > -1000, used < 120_000, shown.rules], [true, true, {}]);
    assertMatch((await run(["keys", "show", "ci"], { folder })).out, /^Key "ci"\n {2}id: +key_\S+\n/);
  }));

Deno.test("keys reports an invalid flag in one line", () =>
  inFolder(async (folder) => {
    await run(["keys", "add", "ci"], { folder });
    const cases: [string[], number, string][] = [
      [["add", "x", "--expires", "soon"], 2, 'Cannot read the moment "soon"'],
      [["add", "x", "--expires", "2001-01-01"], 1, 'Cannot add a key "x": its expiry must be in the future'],
      [["add", "x", "--rpm", "many"], 2, 'Expected a whole number or "unset" after --rpm'],
      [["add", "x", "--ips", "here"], 1, 'Cannot add a key "x": its rules are invalid: ips[0]: Expected an IP address'],
      [["add", "x", "--enforce"], 2, 'Unknown flag "--enforce" of "keys add"'],
      [["change", "ci"], 2, "Expected what to change"],
      [["change", "nobody", "--rpm", "1"], 1, 'Cannot change key "nobody": there is no key'],
      [["change", "ci", "--budget", "-5"], 2, 'Cannot read the flags of "keys change"'],
      [["change", "ci", "--budget=5,0"], 1, 'Cannot change key "ci": its rules are invalid: budget.usd: Expected USD'],
      [["rotate", "ci", "--overlap", "1w"], 2, 'Cannot read the time "1w"'],
      [
        ["rotate", "ci", "--overlap", "91d"],
        1,
        'Cannot rotate key "ci": the overlap must be from 0 seconds to 90 days',
      ],
      [["show", "nobody"], 1, 'Cannot find key "nobody": there is no key with this name or id'],
    ];
    for (const [args, code, line] of cases) {
      const ended = await run(["keys", ...args], { folder });
      assertEquals([ended.code, ended.out, ended.err.startsWith(line)], [code, "", true], ended.err);
      assertEquals(ended.err.split("\n").length, 2, ended.err);
    }
  }));

Deno.test("an invalid configuration ends the start with one line per problem", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(
      `${folder}/bad.jsonc`,
      '{ "prot": 1, "keys": [{ "name": "ci", "key": { "env": "NOT_SET_HERE" } }], "listen": { "port": "x" } }',
    );
    for (const command of ["serve", "check"]) {
      const { code, out, err } = await run([command, "--config", "bad.jsonc"], { folder });
      assertEquals([code, out], [1, ""]);
      const [unknown, port, key, ...more] = err.split("\n");
      assertStringIncludes(unknown ?? "", "bad.jsonc:1:3: prot: Unknown member");
      assertEquals(port, 'bad.jsonc:1:88: listen.port: Expected a number, not "x"');
      assertEquals(key, 'bad.jsonc:1:48: keys[0].key.env: The environment variable "NOT_SET_HERE" is not set');
      assertEquals(more, [""]);
    }
  }));

Deno.test("an unknown command or flag exits with code 2 and one line", () =>
  inFolder(async (folder) => {
    for (const args of [["start"], ["serve", "--prot", "1"]]) {
      const { code, out, err } = await run(args, { folder });
      assertEquals([code, out, err.split("\n").length], [2, "", 2]);
      assertMatch(err, /^Unknown (command|flag)/);
    }
  }));

Deno.test({
  name: "a command whose result cannot be written, as the disk is full, fails and says so",
  ignore: Deno.build.os !== "linux" || skipIf(findProgram("sh") === undefined, "sh is not installed"),
  fn: () =>
    inFolder(async (folder) => {
      const under: [string, ...string[]] = ["sh", "-c", '"$@" > /dev/full', "sh"];
      const { code, err } = await run(["version"], { folder, under });
      assertEquals([code, err], [1, "Cannot write the result: No space left on device (os error 28)\n"]);
    }),
});

Deno.test("a port in use ends the start with one line, and creates no key", () =>
  inFolder(async (folder) => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { code, out, err } = await run(["--port", String(taken.addr.port)], { folder });
    assertEquals([code, out], [1, ""]);
    assertEquals(
      err,
      `Cannot listen on 127.0.0.1:${taken.addr.port}: the port is in use; choose another one with --port\n`,
    );
    assertEquals(JSON.parse((await run(["keys", "list", "--json"], { folder })).out), []);
  }));

Deno.test("a store that cannot be opened ends the start with one line", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/text.db`, "no database ".repeat(100));
    const { code, out, err } = await run(["--store", "sqlite:text.db"], { folder });
    assertEquals([code, out, err.split("\n").length], [1, "", 2]);
    assertMatch(err, /^Cannot open the store "text.db": /);
  }));

Deno.test("keys from the environment work, and no key is created", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "keys": [{ "name": "ci", "key": { "env": "CI_KEY" } }] }');
    const env = { CI_KEY: "a-key-from-the-environment" };
    const gateway = await startReused(["--store", "memory:"], { folder, env });
    assertEquals(keyIn(gateway.banner), "");
    assertStringIncludes(gateway.banner, 'API key "ci" comes from the environment');
    assertEquals(await status(gateway, env.CI_KEY), 200);
    gateway.kill("SIGTERM");
    await gateway.ended;
  }));

Deno.test("a memory store without a terminal explains how to set keys, and leaves no file", () =>
  inFolder(async (folder) => {
    const gateway = await startReused(["--store", "memory:"], { folder });
    assertStringIncludes(
      gateway.banner,
      'Add a key: list it in "keys" of the configuration, as the store is in memory\n',
    );
    gateway.kill("SIGTERM");
    await gateway.ended;
    assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
  }));

Deno.test("check, help and version print and do not touch the store", () =>
  inFolder(async (folder) => {
    const check = await run(["check"], { folder });
    assertEquals(check.code, 0);
    assertStringIncludes(check.out, "sluice/echo -> embedded:echo");
    assertStringIncludes(check.out, "default: models * (4 of 4); endpoints *; protocols *");
    assertStringIncludes((await run(["help"], { folder })).out, "keys add NAME");
    assertMatch((await run(["version"], { folder })).out, /^sluice \d+\.\d+\.\d+\n$/);
    assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
  }));
