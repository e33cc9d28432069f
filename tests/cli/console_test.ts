import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { freshDatabase, postgresTest } from "../support/databases.ts";
import {
  HAS_TERMINAL,
  inFolder,
  type Place,
  reuseGateways,
  reuseProcess,
  run,
  startAtTerminal,
  startReused,
} from "../support/program.ts";

reuseProcess();
reuseGateways();

/** Opens a link. Returns the status of its page, or 0 if no session began. */
async function open(link: string): Promise<number> {
  const response = await fetch(link, { redirect: "manual" });
  await response.body?.cancel();
  const cookie = response.headers.get("set-cookie")?.split(";")[0];
  if (cookie === undefined) return 0;
  const page = await fetch(new URL(response.headers.get("location") ?? "", link), {
    headers: { cookie },
    redirect: "manual",
  });
  await page.body?.cancel();
  return page.status;
}

Deno.test({
  name: "a start at a terminal prints a link into the console, and `console` another one",
  ignore: !HAS_TERMINAL,
  fn: () =>
    inFolder(async (folder) => {
      const gateway = await startAtTerminal(folder);
      try {
        const [link = ""] = /http:\/\/127\.0\.0\.1:\d+\/admin\/console\/sign-in\?link=\S+/.exec(gateway.banner) ?? [];
        assertEquals([await open(link), await open(link)], [200, 0]);
        const { port } = new URL(gateway.origin);
        const printed = await run(["console", "--port", port], { folder });
        assertEquals([printed.code, printed.err], [0, "This link signs you in once, within ten minutes:\n"]);
        assertMatch(printed.out, /^http:\/\/127\.0\.0\.1:\d+\/admin\/console\/sign-in\?link=\S+\n$/);
        assertEquals([await open(printed.out.trim()), await open(printed.out.trim())], [200, 0]);
        const tokens = [link, printed.out.trim()].map((each) => each.slice(-43));
        assert(tokens[0] !== tokens[1]);
        for await (const { name } of Deno.readDir(`${folder}/data`)) {
          const bytes = new TextDecoder("latin1").decode(await Deno.readFile(`${folder}/data/${name}`));
          for (const token of tokens) assertEquals(bytes.includes(token), false, name);
        }
      } finally {
        await gateway.interrupt();
      }
    }),
});

Deno.test("console says why there is no link", () =>
  inFolder(async (folder) => {
    const refused = async (args: string[], place: Partial<Place> = {}) => {
      const { code, out, err } = await run(["console", ...args], { folder, ...place });
      assertEquals([code, out], [1, ""]);
      return err;
    };
    assertMatch(
      await refused(["--port", "1"]),
      /^No gateway answers at http:\/\/127\.0\.0\.1:1: start it with "sluice"/,
    );
    assertStringIncludes(await refused(["--store", "memory:"]), "which only the running gateway can see");
    assertStringIncludes(await refused(["--hostname", "0.0.0.0"]), "The console is off");
    await Deno.writeTextFile(
      `${folder}/far.jsonc`,
      '{ "admin": { "key": { "env": "K" } }, "listen": { "hostname": "::" } }',
    );
    assertStringIncludes(
      await refused(["--config", "far.jsonc"]),
      "sign in with the admin key at http://localhost:8790",
    );

    const gateway = await startReused([], { folder });
    try {
      assert(!gateway.banner.includes("Console:"), "a log must not keep a link");
      const { port } = new URL(gateway.origin);
      assertStringIncludes(await refused(["--port", port]), "has no console (status 404): start it at a terminal");
    } finally {
      gateway.kill("SIGTERM");
      await gateway.ended;
    }
  }));

postgresTest("console makes a link for a gateway with an admin key on a database", () =>
  inFolder(async (folder) => {
    await using database = await freshDatabase();
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "admin": { "key": { "env": "ADMIN" } } }');
    const place = { folder, env: { SLUICE_STORE: database.url, ADMIN: "admin-key-of-the-test" } };
    const gateway = await startReused([], place);
    try {
      const { port } = new URL(gateway.origin);
      const { code, out, err } = await run(["console", "--port", port], place);
      assertEquals(code, 0, err);
      assertEquals([await open(out.trim()), await open(out.trim())], [200, 0]);
    } finally {
      gateway.kill("SIGTERM");
      await gateway.ended;
    }
  }));
