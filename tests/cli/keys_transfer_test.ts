import { assertEquals, assertStringIncludes } from "@std/assert";
import type { KeyRecord } from "../../lib/store/keys.ts";
import { openStore } from "../../lib/store/open.ts";
import { parseStoreAddress } from "../../lib/config/address.ts";
import { freshDatabase, postgresTest } from "../support/databases.ts";
import { inFolder, reuseGateways, reuseProcess, run, type Running, startReused } from "../support/program.ts";

reuseProcess();
reuseGateways();

/** Groups that the exported keys are in. */
const CONFIG = { SLUICE_CONFIG_TEXT: '{ "groups": { "team": {} } }' };

async function modelsStatus({ origin }: Running, key: string): Promise<number> {
  const response = await fetch(`${origin}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.status;
}

async function keysOf(address: string): Promise<KeyRecord[]> {
  const store = await openStore(parseStoreAddress(address), { readOnly: true });
  try {
    return await store.keys.list();
  } finally {
    await store.close();
  }
}

/** Makes keys in every state, and returns the secrets of some. */
async function makeKeys(folder: string, env: Record<string, string>) {
  const place = { folder, env };
  const made = async (...args: string[]) => {
    const { code, out, err } = await run(["keys", ...args], place);
    assertEquals(code, 0, err);
    return out.trim();
  };
  const plain = await made("add", "plain");
  const ruled = await made(
    ...["add", "ruled", "--group", "team", "--expires", "30d", "--rpm", "5", "--report-only"],
    ...["--budget", "0.000000000001", "--period", "week", "--models", "acme/*", "--ips", "10.0.0.0/8"],
  );
  const disabled = await made("add", "disabled");
  await made("disable", "disabled");
  const revoked = await made("add", "gone");
  await made("revoke", "gone");
  const rotated = await made("add", "rotated");
  const successor = await made("rotate", "rotated", "--overlap", "30d");
  await made("add", "gone");
  return { plain, ruled, disabled, revoked, rotated, successor };
}

postgresTest(
  "keys export and import copy keys from a file to a database and back unchanged",
  () =>
    inFolder(async (folder) => {
      await using database = await freshDatabase();
      const file = { ...CONFIG, SLUICE_STORE: `sqlite:${folder}/data/one.db` };
      const shared = { ...CONFIG, SLUICE_STORE: database.url };
      const back = { ...CONFIG, SLUICE_STORE: `sqlite:${folder}/data/two.db` };
      const secrets = await makeKeys(folder, file);
      const exported = await run(["keys", "export"], { folder, env: file });
      assertEquals([exported.code, exported.err, exported.out.split("\n").length], [0, "", 8]);
      for (const secret of Object.values(secrets)) assertEquals(exported.out.includes(secret), false);

      const import_ = async (env: Record<string, string>, input: string) => {
        const { code, out, err } = await run(["keys", "import"], { folder, env, input });
        return { code, out, err };
      };
      const report = (added: number, present: number) => ({
        code: 0,
        out: `Imported ${added} ${added === 1 ? "key" : "keys"}; the store had ${present} already\n`,
        err: "",
      });
      assertEquals(await import_(shared, exported.out), report(6, 0));
      assertEquals(await import_(shared, exported.out), report(0, 6));
      const original = await keysOf(file.SLUICE_STORE);
      assertEquals(await keysOf(shared.SLUICE_STORE), original);

      const gateway = await startReused(["serve"], { folder, env: shared });
      const expected = { plain: 200, ruled: 403, disabled: 403, revoked: 401, rotated: 200, successor: 200 };
      for (const [name, status] of Object.entries(expected)) {
        assertEquals(await modelsStatus(gateway, secrets[name as keyof typeof secrets]), status, name);
      }
      gateway.kill("SIGTERM");
      assertEquals((await gateway.ended).code, 0);
      // The last uses that the gateway noted make no conflict.
      assertEquals(await import_(shared, exported.out), report(0, 6));

      const second = await run(["keys", "export"], { folder, env: shared });
      assertEquals(await import_(back, second.out), report(6, 0));
      assertEquals(await keysOf(back.SLUICE_STORE), await keysOf(shared.SLUICE_STORE));
    }),
);

Deno.test("keys import rejects conflicts, names them, and adds nothing", () =>
  inFolder(async (folder) => {
    const from = { ...CONFIG, SLUICE_STORE: `sqlite:${folder}/data/one.db` };
    const to = { ...CONFIG, SLUICE_STORE: `sqlite:${folder}/data/two.db` };
    const command = (env: Record<string, string>, ...args: string[]) => run(["keys", ...args], { folder, env });
    for (const name of ["changed", "taken", "fresh"]) await command(from, "add", name);
    const { out } = await command(from, "export");
    const [head = "", changed = "", taken = "", fresh = ""] = out.split("\n");
    const imported = async (env: Record<string, string>, lines: readonly string[]) =>
      await run(["keys", "import"], { folder, env, input: lines.join("\n") });
    const count = (keys: number) => head.replace('"keys":3', `"keys":${keys}`);
    assertEquals((await imported(to, [count(1), changed])).code, 0);
    await command(to, "disable", "changed");
    await command(to, "add", "taken");
    const before = await keysOf(to.SLUICE_STORE);

    const { id, hash, group, ...rest } = JSON.parse(fresh);
    const [first, second, third] = [changed, taken, fresh].map((line): string => JSON.parse(line).id);
    const line = (change: Record<string, unknown>) => JSON.stringify({ id, hash, group, ...rest, ...change });
    const cases: [lines: string[], problems: string[]][] = [
      [[head, changed, taken, fresh], [
        `key "changed" (${first}): the key with this id has a different disabled in the store`,
        `key "taken" (${second}): its name is used by ${before[1]?.id}`,
      ]],
      [[count(1), line({ hash: before[0]?.hash })], [
        `key "fresh" (${third}): it has the same secret as key "changed" (${first})`,
      ]],
      [[count(2), fresh, line({ id: "key_twin", name: "twin" })], [
        `key "twin" (key_twin): it has the same secret as key "fresh" (${third})`,
      ]],
      [[count(1), line({ group: "none" })], [
        `key "fresh" (${third}): unknown group "none"; known: team, default`,
      ]],
      [[head, fresh], ["the file is incomplete: 1 of 3 keys are there"]],
      [[count(1), fresh.slice(0, -9)], ["line 2: "]],
      [[count(2), "", fresh, "", line({ group: 1 })], ["line 5: group: "]],
      [[count(1), line({ id: "config:ci", created_at: "yesterday", rules: { modles: [] } })], [
        'line 2: id: Expected an id such as "key_FJJUXxbndaOn"',
        'line 2: created_at: Expected a time such as "2026-11-21T04:18:10.907Z"',
        "line 2: rules.modles: Unknown member",
      ]],
      [[count(1).replace('"version":1', '"version":2'), fresh], [
        "they were exported by a newer version of Sluice (format 2, known up to 1)",
      ]],
      [[fresh], ["the first line is not the header of a key export"]],
      [[], ["the first line is not the header of a key export"]],
    ];
    for (const [lines, problems] of cases) {
      const { code, out, err } = await imported(to, lines);
      assertEquals([code, out], [1, ""], err);
      assertStringIncludes(err, "Cannot import the keys; none was added:\n");
      for (const problem of problems) assertStringIncludes(err, `\n  ${problem}`);
      assertEquals(err.trimEnd().split("\n").length, 1 + problems.length, err);
      assertEquals(await keysOf(to.SLUICE_STORE), before);
    }
  }));

Deno.test("keys list and keys show warn of a group that the configuration no longer has", () =>
  inFolder(async (folder) => {
    const configure = (groups: string) => Deno.writeTextFile(`${folder}/sluice.jsonc`, `{ "groups": { ${groups} } }`);
    await configure('"team": {}');
    assertEquals((await run(["keys", "add", "ci", "--group", "team"], { folder })).code, 0);
    assertEquals((await run(["keys", "list"], { folder })).err, "");
    await configure("");
    const warning = 'Warning: The configuration has no group "team": requests with its keys get 403\n';
    for (const args of [["keys", "list"], ["keys", "show", "ci"]]) {
      const { code, err } = await run(args, { folder });
      assertEquals([code, err], [0, warning]);
    }
  }));
