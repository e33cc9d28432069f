import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  inFolder,
  reuseGateways,
  reuseProcess,
  run,
  type Running,
  startReused,
  startWithKey,
} from "../../support/program.ts";
import { postChat } from "../../support/post_chat.ts";

reuseProcess();
reuseGateways();

const ADMIN_KEY = "an-admin-key-in-a-variable";
const ENV = { OPERATOR: ADMIN_KEY };

function configWith(port: number | undefined): string {
  return JSON.stringify({ admin: { key: { env: "OPERATOR" }, ...(port !== undefined && { listen: { port } }) } });
}

function adminSideOf({ banner }: Running): string {
  return /^Admin side: (\S+)$/m.exec(banner)?.[1] ?? "";
}

/** Requests `/keys` as the operator; `undefined` if the connection is refused. */
async function keysAt(address: string, init: RequestInit = {}): Promise<{ status: number; text: string } | undefined> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const response = await fetch(`${address}/keys`, { headers, ...init }).catch(() => undefined);
  return response && { status: response.status, text: await response.text() };
}

Deno.test("an admin listener shares the store and the shutdown with the clients' listener", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, configWith(0));
    const gateway = await startReused([], { folder, env: ENV });
    const admin = adminSideOf(gateway);
    assertMatch(admin, /^http:\/\/127\.0\.0\.1:[1-9]\d*\/admin\/v1$/);
    assert(!admin.startsWith(gateway.origin));
    assertEquals((await keysAt(`${gateway.origin}/admin/v1`))?.status, 404);

    const made = await keysAt(admin, { method: "POST", body: '{"name":"ci"}' });
    const { key } = JSON.parse(made?.text ?? "");
    const ask = async (path: string, bearer: string) => {
      const response = await fetch(path, { headers: { authorization: `Bearer ${bearer}` } });
      return `${response.status} ${await response.text()}`;
    };
    assertMatch(await ask(`${gateway.origin}/v1/models`, key), /^200 /);
    // Changes by the command line are visible at once.
    assertEquals((await run(["keys", "revoke", "ci"], { folder, env: ENV })).code, 0);
    assertMatch(await ask(`${gateway.origin}/v1/models`, key), /^401 /);
    assertMatch(await ask(`${admin}/keys/ci`, ADMIN_KEY), /^200 .*"state":"revoked"/);
    assertMatch(await ask(`${admin}/keys`, `${ADMIN_KEY}x`), /^401 /);

    gateway.kill("SIGTERM");
    const { code, out, err } = await gateway.ended;
    assertEquals(code, 0);
    assertEquals(await keysAt(admin), undefined);
    const events = err.trimEnd().split("\n").map((line) => JSON.parse(line).event);
    const usual = ["request", "stopping", "stopped"];
    assertEquals(events.filter((event) => !usual.includes(event)), ["key_changed", "admin_refused"]);
    for (const secret of [ADMIN_KEY, key]) assert(!`${out}${err}`.includes(secret));
  }));

Deno.test("at SIGTERM both listeners close at once, and a running answer is completed", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, configWith(0));
    const gateway = await startWithKey([], { folder, env: ENV }, startReused);
    const content = "word ".repeat(30_000);
    // Megabytes of events that are not read yet.
    const answer = await postChat(gateway.origin, gateway.key, { stream: true, messages: [{ role: "user", content }] });
    assertEquals(answer.status, 200);
    gateway.kill("SIGTERM");
    for (const address of [gateway.origin, adminSideOf(gateway)]) {
      while (await keysAt(address) !== undefined);
    }
    assertStringIncludes(await answer.text(), "data: [DONE]\n\n");
    assertEquals((await gateway.ended).code, 0);
  }));

Deno.test("an admin port in use ends the start with one line, and creates no key", () =>
  inFolder(async (folder) => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = taken.addr;
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, configWith(port));
    const { code, out, err } = await run(["--port", "0"], { folder, env: ENV });
    assertEquals([code, out], [1, ""]);
    assertEquals(
      err,
      `Cannot listen on 127.0.0.1:${port} for the admin side: the port is in use; ` +
        "choose another one with --admin-port\n",
    );
    assertEquals(JSON.parse((await run(["keys", "list", "--json"], { folder, env: ENV })).out), []);
  }));

Deno.test("check prints the address of the admin side", () =>
  inFolder(async (folder) => {
    const cases: [file: string, line: string][] = [
      ["{}", 'Admin side:    none (there is no "admin" in the configuration)\n'],
      [configWith(undefined), "Admin side:    under /admin/v1, at the same address\n"],
      [configWith(8791), "Admin side:    127.0.0.1:8791, under /admin/v1\n"],
    ];
    for (const [file, line] of cases) {
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, file);
      const { code, out } = await run(["check"], { folder, env: ENV });
      assertEquals(code, 0);
      assertStringIncludes(out, line);
      assert(!out.includes(ADMIN_KEY));
    }
  }));
