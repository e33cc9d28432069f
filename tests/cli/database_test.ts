/** Tests of commands on a Postgres database from which a gateway serves at the same time. */
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { freshDatabase, postgresTest } from "../support/databases.ts";
import { inFolder, reuseGateways, reuseProcess, run, startReused } from "../support/program.ts";
import { postChat } from "../support/post_chat.ts";
import { until } from "../support/soon.ts";

reuseProcess();
reuseGateways();

postgresTest(
  "keys, usage, explain, audit, prune, check, doctor and health work over a database",
  () =>
    inFolder(async (folder) => {
      await using database = await freshDatabase();
      const env = { SLUICE_STORE: database.url, SLUICE_LIMITS_STORE: "", ADMIN_KEY: "admin-key-of-the-test" };
      const place = { folder, env };
      const added = await run(["keys", "add", "ci", "--rpm", "50"], place);
      assertEquals(added.code, 0, added.err);
      const key = added.out.trim();
      const gateway = await startReused([], place);
      try {
        assertStringIncludes(gateway.banner, 'API key "ci" exists since');
        const ask = () => postChat(gateway.origin, key);
        const answer = await ask();
        await answer.text();
        assertEquals(answer.status, 200);
        const id = answer.headers.get("x-request-id") ?? "";

        const outputs: [args: string[], form: RegExp][] = [
          [["keys", "list"], /ci +default +active/],
          [["keys", "show", "ci"], /limits: +50 requests per minute/],
          [["keys", "change", "ci", "--rpm", "60"], /limits: +60 requests per minute/],
          [["usage"], /^ci +key_\S+ +1 /m],
          [["usage", "--by", "model", "--json"], /"sluice\/echo"/],
          [["explain", id], /sluice\/echo/],
          [["audit"], /Entries: +1, from 1 to 1\n(.*\n)+No differences found/],
          [["prune"], /^Pruned 0 entries older than 90 days/],
          [["check"], /Store: +postgres:.*\n(.*\n)*Warnings \(1\):\n +limits_store: Several nodes/],
          [["doctor"], /ok +store: Gateways on \S+ \S+ have \d+ connections to it/],
          [["health", "--port", new URL(gateway.origin).port], /^The gateway at \S+ is alive$/m],
        ];
        for (const [args, form] of outputs) {
          const ended = await run(args, place);
          // A server of the tests' own is started without fsync, which the doctor reports.
          const isReported = ended.out.includes("fsync is off");
          assertEquals([ended.code, ended.err], [isReported ? 1 : 0, ""], `${args}: ${ended.out}`);
          assertMatch(ended.out, form, args.join(" "));
        }

        assertEquals((await run(["keys", "revoke", "ci"], place)).code, 0);
        await until("the key is refused", async () => {
          const refused = await ask();
          await refused.text();
          return refused.status === 401;
        }, 30_000);
      } finally {
        gateway.kill("SIGTERM");
        await gateway.ended;
      }
    }),
);

postgresTest("a command that a read-only database refuses says so in one line", () =>
  inFolder(async (folder) => {
    await using database = await freshDatabase();
    await run(["keys", "add", "ci"], { folder, env: { SLUICE_STORE: database.url } });
    const env = { SLUICE_STORE: `${database.url}?default_transaction_read_only=on` };
    for (const args of [["keys", "add", "bot"], ["keys", "revoke", "ci"], ["prune"]]) {
      const ended = await run(args, { folder, env });
      assertEquals(ended.code, 1);
      assertMatch(ended.err, /^Cannot use the store "postgres:[^"]*": cannot execute .* in a read-only transaction\n$/);
    }
  }));
