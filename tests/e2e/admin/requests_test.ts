import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { freshDatabase, postgresTest } from "../../support/databases.ts";
import { inFolder, reuseGateways, reuseProcess, run, startReused } from "../../support/program.ts";
import { postChat } from "../../support/post_chat.ts";

reuseProcess();
reuseGateways();

const ENV = { OPERATOR: "an-admin-key-in-a-variable" };
const CONFIG = { admin: { key: { env: "OPERATOR" } }, groups: { default: { key_limits: { requests_per_minute: 3 } } } };

/** Requests of two keys: answered, refused by a rule, and refused by a limit; found by the command and the admin side. */
async function findThem(folder: string, env: Record<string, string>): Promise<void> {
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(CONFIG));
  const keys: Record<string, string> = {};
  for (const name of ["anna", "ben"]) keys[name] = (await run(["keys", "add", name], { folder, env })).out.trim();
  const gateway = await startReused([], { folder, env });
  const ask = async (name: string, members: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${keys[name]}`, ...headers },
      body: JSON.stringify({ model: "sluice/echo", messages: [{ role: "user", content: "hi" }], ...members }),
    });
    await response.text();
    return response.status;
  };
  const list = async (query: string) => {
    const response = await fetch(`${gateway.origin}/admin/v1/requests?${query}`, {
      headers: { authorization: `Bearer ${ENV.OPERATOR}` },
    });
    return { status: response.status, ...await response.json() };
  };
  const found = async (query: string) => {
    const { data } = await list(query);
    return data.map(({ key, status }: { key: string; status: number }) => `${key} ${status}`);
  };
  const statuses = [
    await ask("anna", { user: "u1" }, { "x-sluice-tags": "job:1,nightly" }),
    await ask("anna", { temperature: "hot" }),
    await ask("anna", { user: "=1+1" }),
    await ask("anna", {}),
    await ask("anna", {}),
    await ask("ben", {}, { "x-sluice-user": "u2" }),
  ];
  assertEquals(statuses, [200, 400, 200, 200, 429, 200]);
  // Entries without a cost are written later, in the background.
  for (const deadline = Date.now() + 60_000; (await list("limit=1")).last_seq < 6;) assert(Date.now() < deadline);

  const all = ["ben 200", "anna 429", "anna 200", "anna 200", "anna 400", "anna 200"];
  assertEquals(await found(""), all);
  assertEquals(await found("key=ben"), ["ben 200"]);
  assertEquals(await found("failed=true"), ["anna 429", "anna 400"]);
  assertEquals(await found("status=4xx&reason=limit"), ["anna 429"]);
  assertEquals(await found("user=u1"), ["anna 200"]);
  assertEquals(await found("tag=nightly"), ["anna 200"]);
  assertEquals(await found("model=sluice/echo&upstream=embedded"), ["ben 200", "anna 200", "anna 200", "anna 200"]);
  assertEquals(await found("min_cost_usd=1"), []);
  assertEquals(await found("until=1d"), []);

  const { lines: [sum] } = await (await fetch(`${gateway.origin}/admin/v1/usage?by=upstream`, {
    headers: { authorization: `Bearer ${ENV.OPERATOR}` },
  })).json();
  assertEquals([sum.upstream, sum.model, sum.requests], ["embedded", "echo", 4]);
  const used = (await run(["usage", "--by", "upstream", "--csv"], { folder, env })).out;
  assertMatch(used, /embedded,echo,/);

  const pages: string[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const page: { data: { id: string }[]; next: string | null } = await list(
      `sort=duration&limit=4${cursor === "" ? "" : `&cursor=${cursor}`}`,
    );
    pages.push(...page.data.map(({ id }) => id));
    cursor = page.next;
  }
  assertEquals([pages.length, new Set(pages).size], [6, 6]);

  const { data: [limited] } = await list("reason=limit");
  assertMatch(
    limited.why,
    /^Refused: key "anna" is limited to 3 requests per minute \(group default, key_limits\); the next slot was free \d+(\.\d)? s later$/,
  );
  const later = await list(`after_seq=${(await list("")).last_seq}`);
  assertEquals([later.data, later.last_seq], [[], 6]);
  assertEquals(await ask("ben", {}), 200);
  for (const deadline = Date.now() + 60_000; (await list("after_seq=6&key=ben")).data.length < 1;) {
    assert(Date.now() < deadline);
  }
  assertEquals((await list("after_seq=6&key=anna")).last_seq, 7);
  for (
    const wrong of [
      "status=9",
      "reason=x",
      "sort=x",
      "cursor=x",
      "cursor=cost.1.1.1",
      "limit=0",
      "key=nobody",
      "upstream=nope",
      "group=nope",
      "model=nope",
      "min_cost_usd=9223372.036854775808",
      "after_seq=1&sort=cost",
    ]
  ) {
    const { status, error } = await list(wrong);
    assertEquals([status, wrong.includes(`${error.param}=`)], [400, true], wrong);
  }

  const { status, error } = await list("user=a%00");
  assertEquals([status, error.message], [400, "Cannot read the request target: it has a NUL character"]);

  const command = async (...args: string[]) => await run(["requests", ...args], { folder, env });
  const json = JSON.parse((await command("--failed", "--json")).out);
  assertEquals(json.data, (await list("failed=true")).data);
  const table = await command("--key", "anna", "--status", "429");
  assertMatch(
    table.out,
    /^RECEIVED +KEY +GROUP +MODEL .*\n\S+Z +anna +default +sluice\/echo +- +429 +limit +\d+ +0 +req_\w+\n$/,
  );
  const csv = await command("--user", "=1+1", "--csv");
  assertStringIncludes(csv.out, ",'=1+1,\r\n");
  const more = await command("--limit", "2");
  assertMatch(more.err, /^There may be more: --cursor time\.\d+\.\d+\.\d+\n$/);
  for (const [name, known] of [["reason", "limit"], ["endpoint", "chat"]] as const) {
    const wrong = await command(`--${name}`, "x");
    assertEquals(wrong.code, 2);
    assertMatch(wrong.err, new RegExp(`^Cannot read ${name} "x": expected one of .*\\b${known}\\b`));
  }
  const unknown = await command("--upstream", "nope");
  assertEquals([unknown.code, unknown.err.split("\n")[0]], [
    2,
    'Cannot find upstream "nope": it is not configured and has no requests in the period; see "sluice help"',
  ]);
  gateway.kill("SIGTERM");
  assertEquals((await gateway.ended).code, 0);
}

Deno.test("the command and the admin API find requests in a SQLite file", () =>
  inFolder((folder) => findThem(folder, ENV)));

postgresTest("the command and the admin API find requests in Postgres", () =>
  inFolder(async (folder) => {
    await using database = await freshDatabase();
    await findThem(folder, { ...ENV, SLUICE_STORE: database.url });
  }));

Deno.test("sluice requests --follow prints each request as it is entered", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(CONFIG));
    const key = (await run(["keys", "add", "anna"], { folder, env: ENV })).out.trim();
    const gateway = await startReused([], { folder, env: ENV });
    const ask = async () =>
      await (await postChat(gateway.origin, key, { messages: [{ role: "user", content: "hi" }] })).text();
    await ask();
    const root = new URL("../../../", import.meta.url).pathname;
    const follower = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", `${root}main.ts`, "requests", "--follow"],
      cwd: folder,
      env: ENV,
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const reader = follower.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let out = "";
    const until = async (pattern: RegExp) => {
      while (!pattern.test(out)) {
        const { done, value } = await reader.read();
        assert(!done, out);
        out += value;
      }
    };
    // The header is printed once the last entry is known: later entries are new.
    await until(/^RECEIVED .*\n/);
    await ask();
    await until(/\n.* anna .* 200 .*\n/);
    assertEquals(out.trimEnd().split("\n").length, 2);
    // It ends with its reader, such as `head`.
    await reader.cancel();
    await ask();
    assertEquals((await follower.status).code, 0);
    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
  }));
