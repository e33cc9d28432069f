import { assert, assertEquals } from "@std/assert";
import { inFolder, run, start } from "../../support/program.ts";

const ADMIN_KEY = "admin-key-of-this-gateway";

Deno.test("a store keeps its log while other commands use it, so that a kill loses nothing", () =>
  inFolder(async (folder) => {
    const config = { store: "sqlite:./sluice.db", admin: { key: { env: "ADMIN_KEY" } } };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
    const place = { folder, env: { ADMIN_KEY } };
    const logOf = async () => (await Deno.stat(`${folder}/sluice.db-wal`)).ino;
    const keys = async (origin: string, body?: object) => {
      const response = await fetch(`${origin}/admin/v1/keys`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${ADMIN_KEY}` },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      assert(response.ok);
      return await response.text();
    };
    const first = await start([], place);
    const log = await logOf();
    // The process that closes a database last removes its log. Each of these would be the last if it did not see the gateway's lock.
    for (const name of ["one", "two", "three"]) assertEquals((await run(["keys", "add", name], place)).code, 0);
    assertEquals(await logOf(), log);
    await keys(first.origin, { name: "four" });
    first.kill("SIGKILL");
    await first.ended;
    const second = await start([], place);
    const listed = await keys(second.origin);
    for (const name of ["one", "two", "three", "four"]) assert(listed.includes(`"${name}"`), `${name}: ${listed}`);
    second.kill("SIGTERM");
    assertEquals((await second.ended).code, 0);
  }));
