import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { freshDatabase, postgresTest } from "../support/databases.ts";
import { inFolder, type Place, reuseProcess, run } from "../support/program.ts";

reuseProcess();

async function changeAndList(place: Place): Promise<void> {
  const added = await run(["keys", "add", "ci", "--rpm", "5"], place);
  await run(["keys", "change", "ci", "--rpm", "6", "--models", "acme/*"], place);
  await run(["keys", "disable", "ci"], place);
  await run(["keys", "disable", "ci"], place);
  await run(["keys", "rotate", "ci", "--overlap", "0s"], place);
  await run(["keys", "revoke", "ci"], place);
  const { code, out, err } = await run(["audit", "--changes"], place);
  assertEquals([code, err], [0, ""]);
  const [head = "", ...lines] = out.trimEnd().split("\n");
  assertMatch(head, /^TIME +AUTHOR +ADDRESS +ACTION +SUBJECT +CHANGE$/);
  assertEquals(lines.toReversed().map((line) => line.split(/ {2,}/).slice(1, 4)), [
    ["command_line", "-", "create_key"],
    ["command_line", "-", "change_key"],
    ["command_line", "-", "change_key"],
    ["command_line", "-", "rotate_key"],
    ["command_line", "-", "revoke_key"],
  ]);
  assertMatch(
    out,
    /name: "ci"; group: "default"; rules: \{"limits":\{"requests_per_minute":5,"report_only":false\}\}\n/,
  );
  assertMatch(out, / rules\.limits\.requests_per_minute: 5 -> 6; rules\.models: none -> \["acme\/\*"\]; name: "ci"\n/);
  assertStringIncludes(out, "disabled: false -> true");
  assertEquals(out.includes(added.out.trim().slice(10)), false, "no secret is listed");

  const newest = await run(["audit", "--changes", "--limit", "1"], place);
  assertEquals(newest.out.trimEnd().split("\n").length, 2);
  assertMatch(newest.err, /^Earlier changes: --cursor \d+\n$/);
  const page = JSON.parse((await run(["audit", "--changes", "--json", "--limit", "2"], place)).out);
  assertEquals(page.data.map(({ action }: { action: string }) => action), ["revoke_key", "rotate_key"]);
  const rest = await run(["audit", "--changes", "--limit", "9", "--cursor", page.next], place);
  assertEquals(rest.out.trimEnd().split("\n").length, 4);
}

Deno.test("audit --changes lists changes made by commands in a file", () =>
  inFolder((folder) => changeAndList({ folder })));

postgresTest("audit --changes lists changes made by commands in a database", () =>
  inFolder(async (folder) => {
    await using database = await freshDatabase();
    await changeAndList({ folder, env: { SLUICE_STORE: database.url } });
  }));

Deno.test("audit --changes rejects invalid input, and reports an empty log", () =>
  inFolder(async (folder) => {
    await run(["keys", "add", "ci"], { folder });
    const cases: [args: string[], code: number, text: string][] = [
      [["audit", "--limit", "5"], 2, "Cannot use --limit without --changes"],
      [["audit", "--cursor", "5"], 2, "Cannot use --cursor without --changes"],
      [["audit", "--changes", "--limit", "many"], 2, "Invalid limit: expected a whole number from 1 to 1000"],
    ];
    for (const [args, code, text] of cases) {
      const ended = await run(args, { folder });
      assertEquals(ended.code, code);
      assertStringIncludes(ended.err, text);
    }
    assertEquals((await run(["audit", "--changes", "--cursor", "1"], { folder })).out, "No changes are logged yet\n");
  }));

Deno.test("prune deletes changes older than the retention", () =>
  inFolder(async (folder) => {
    await run(["keys", "add", "ci"], { folder });
    const store = openSqliteStore(`${folder}/data/sluice.db`);
    await store.operators.logChange({ author: "gateway", at: Date.now() - 91 * 86_400_000, action: "sign_in" });
    await store.operators.logChange({ author: "gateway", at: Date.now() - 89 * 86_400_000, action: "sign_out" });
    await store.close();
    await run(["prune"], { folder });
    const { data } = JSON.parse((await run(["audit", "--changes", "--json"], { folder })).out);
    assertEquals(data.map(({ action }: { action: string }) => action), ["sign_out", "create_key"]);
  }));

Deno.test("imported keys are logged, but not those that are there already", () =>
  inFolder(async (folder) => {
    await run(["keys", "add", "ci"], { folder });
    const { out } = await run(["keys", "export"], { folder });
    await run(["keys", "import"], { folder, input: out });
    await run(["keys", "import", "--store", "sqlite:other/sluice.db"], { folder, input: out });
    const actionsIn = async (store: string) => {
      const { data } = JSON.parse((await run(["audit", "--changes", "--json", "--store", store], { folder })).out);
      return data.map(({ action, author }: Record<string, string>) => `${author} ${action}`);
    };
    assertEquals(await actionsIn("sqlite:data/sluice.db"), ["command_line create_key"]);
    assertEquals(await actionsIn("sqlite:other/sluice.db"), ["command_line create_key"]);
  }));
