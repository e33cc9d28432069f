import { DatabaseSync } from "node:sqlite";
import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { checkClock } from "../../lib/doctor/clock.ts";
import { createNotes, type Finding, withoutSecrets } from "../../lib/doctor/finding.ts";
import { rememberSecret } from "../../lib/secret.ts";
import { checkStoreFiles } from "../../lib/doctor/store_files.ts";
import { checkProxies } from "../../lib/doctor/proxies.ts";
import { noteCertificate } from "../../lib/doctor/connection.ts";
import { runChecks } from "../../lib/doctor/run_checks.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { ServingState } from "../../lib/doctor/gateway.ts";
import { MIGRATIONS } from "../../lib/store/sqlite/migrations.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { takeOwnership } from "../../lib/store/sqlite/owner_lock.ts";
import { StoreError } from "../../lib/store/store.ts";
import { inFolder } from "../support/program.ts";
import { canRun, skipIf } from "../support/skip.ts";
import { json, startUpstream } from "../upstream/mod.ts";

const KEY = "upstream-key-0123456789";
const CHECK = "../../lib/doctor/store_files.ts";

function lines(findings: readonly Finding[]): string[] {
  return findings.map(({ level, what }) => `${level}: ${what}`);
}

Deno.test("a clock more than 5 s off the upstreams' is a warning, unless only one upstream differs", () => {
  const cases: [number[], string][] = [
    [[], ""],
    [[0, 4_900], "ok: The clock agrees with the upstreams (2 checked)"],
    [[60_000, 61_000, 0], "warning: This machine's clock is 60.0 s behind the upstreams"],
    [[-60_000], "warning: This machine's clock is 60.0 s ahead of the upstreams"],
    [[0, 0, 99_000], "ok: The clock agrees with the upstreams (3 checked)"],
  ];
  for (const [ahead, line] of cases) assertEquals(lines(checkClock(ahead))[0] ?? "", line);
});

Deno.test("a wrong clock is detected by an upstream's date", async () => {
  await using server = startUpstream(() => json({ data: [] }));
  const config = parseConfig(
    { upstreams: { one: { vendor: "vllm", base_url: `${server.url}/v1` } }, store: "memory:" },
    () => undefined,
  );
  const look = { config, env: () => undefined, timeoutMs: 5_000, serving: () => Promise.resolve(undefined) };
  const right = await runChecks({ ...look, now: Date.now });
  assertEquals(right.filter(({ about }) => about === "clock").map(({ level }) => level), ["ok"]);
  const off = await runChecks({ ...look, now: () => Date.now() + 60_000 });
  assertMatch(
    lines(off.filter(({ about }) => about === "clock"))[0] ?? "",
    /^warning: .* \d\d\.\d s ahead of the upstreams/,
  );
});

Deno.test("a certificate that expires soon is a warning", () => {
  const certificate = (validTo: string | undefined) => {
    const notes = createNotes("x");
    noteCertificate(notes, { text: "It answers", version: "TLSv1.3", validTo, now: () => Date.UTC(2026, 0, 1) });
    return lines(notes.found)[0];
  };
  assertEquals(
    certificate("Jan 10 00:00:00 2026 GMT"),
    "warning: It answers, with TLSv1.3, certificate until 2026-01-10: 9 days",
  );
  assertEquals(certificate("Jan 30 00:00:00 2026 GMT"), "ok: It answers, with TLSv1.3, certificate until 2026-01-30");
  assertEquals(certificate(undefined), "ok: It answers, with TLSv1.3");
});

Deno.test("proxies are shown without passwords, and one for a local host is a warning", () => {
  const hosts = [{ name: "far", url: "https://api.test/v1" }, { name: "near", url: "http://10.0.0.7:8000/v1" }];
  const look = (more: Record<string, string>) => {
    const env: Record<string, string> = { ALL_PROXY: "http://ann:secret@proxy.test:3128", ...more };
    return lines(checkProxies(hosts, (name) => env[name]));
  };
  const far = 'ok: Upstream "far" is reached through http://proxy.test:3128';
  const near =
    'warning: Upstream "near" is reached through http://proxy.test:3128, although it is a local address (10.0.0.7)';
  assertEquals(look({}), [far, near]);
  assertEquals(look({ NO_PROXY: "*" }), [near, "warning: NO_PROXY is *, which exempts names but not addresses"]);
  assertEquals(look({ NO_PROXY: "*, 10.0.0.0/8" }), ["ok: None: every upstream is reached directly"]);
});

Deno.test("store files: modes, disk space and owner", async () => {
  await inFolder(async (folder) => {
    const stopped = () => Promise.resolve(undefined);
    const store = { kind: "sqlite", path: `${folder}/data/sluice.db` } as const;
    assertEquals(lines(await checkStoreFiles({ store }, stopped)), [
      `ok: "${folder}/data" does not exist yet; the first start creates it`,
    ]);
    await Deno.mkdir(`${folder}/data`, { mode: 0o755 });
    await Deno.writeTextFile(`${folder}/data/sluice.db`, "");
    await Deno.chmod(`${folder}/data/sluice.db`, 0o640);
    await Deno.writeTextFile(`${folder}/data/sluice.db-owner`, "");
    await Deno.chmod(`${folder}/data/sluice.db-owner`, 0o600);
    const open = await checkStoreFiles({ store }, stopped);
    assertEquals(lines(open).slice(0, 2), [
      `warning: "${folder}/data" can be accessed by other users of this machine (0755)`,
      `warning: "${folder}/data/sluice.db" can be accessed by other users of this machine (0640)`,
    ]);
    assertEquals(open[0]?.advice, "Run chmod 0700 on it");
    assertMatch(lines(open)[2] ?? "", /is writable/);
    assertEquals(lines(open).at(-1), "ok: No gateway uses it");

    await Deno.chmod(`${folder}/data`, 0o700);
    await Deno.chmod(`${folder}/data/sluice.db`, 0o600);
    assertEquals(
      lines(await checkStoreFiles({ store }, stopped))[0],
      `ok: "${folder}/data" and its files are accessible to their owner only`,
    );

    const owner = takeOwnership(`${folder}/data/sluice.db-owner`);
    assertMatch(
      lines(await checkStoreFiles({ store }, stopped)).at(-1) ?? "",
      /^warning: Another process uses it/,
    );
    assertEquals(
      lines(await checkStoreFiles({ store }, () => Promise.resolve({ status: "ok" }))).at(-1),
      "ok: A gateway uses it and answers",
    );
    owner.close();
    // The check leaves no files behind.
    const left = (await Array.fromAsync(Deno.readDir(`${folder}/data`))).map(({ name }) => name);
    assertEquals(left.sort(), ["sluice.db", "sluice.db-owner"]);
    const file = { kind: "sqlite", path: `${folder}/data/sluice.db/more.db` } as const;
    assertMatch(lines(await checkStoreFiles({ store: file }, stopped))[0] ?? "", /^error: .* is not a folder$/);
  });
});

Deno.test("store files: the database is absent, new, current, older, newer, of another program or damaged", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const look = async () => {
      const found = await checkStoreFiles({ store: { kind: "sqlite", path } }, () => Promise.resolve(undefined));
      return lines(found)[2] ?? "";
    };
    const change = (statement: string) => {
      using db = new DatabaseSync(path);
      db.exec(statement);
    };
    assertEquals(await look(), `ok: "${path}" does not exist; the next start creates it`);
    await Deno.writeTextFile(path, "", { mode: 0o600 });
    assertEquals(await look(), "ok: It has no tables yet; the next start creates them");
    await (await openSqliteStore(path)).close();
    assertEquals(await look(), `ok: Its tables are up to date (schema ${MIGRATIONS.length})`);
    change(`PRAGMA user_version = ${MIGRATIONS.length - 1}`);
    const older = MIGRATIONS.length - 1;
    assertEquals(await look(), `ok: Its tables have schema ${older}; the next start migrates them to ${older + 1}`);
    change(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
    assertMatch(await look(), /^error: It cannot be used: it was written by a newer version of Sluice/);
    change("PRAGMA user_version = 0");
    assertMatch(await look(), /^error: It cannot be used: it is a database of another program/);
    await Deno.writeTextFile(path, "not a database".repeat(100));
    assertMatch(await look(), /^error: It cannot be used: file is not a database/);
  }));

Deno.test("the state of the gateway that answers is a finding", async () => {
  const config = parseConfig({ store: "memory:" }, () => undefined);
  const look = async (state: ServingState | undefined) =>
    lines(
      await runChecks({
        config,
        env: () => undefined,
        timeoutMs: 5_000,
        now: Date.now,
        serving: () => Promise.resolve(state),
      }),
    ).filter((line) => line.includes("gateway"));
  assertEquals(await look(undefined), []);
  assertEquals(await look({ status: "ok" }), ["ok: The gateway that answers is ready"]);
  assertEquals(await look({ status: "degraded", message: "degraded: a answered 0 of its last 7 attempts" }), [
    "warning: The gateway that answers is degraded: a answered 0 of its last 7 attempts",
  ]);
  assertEquals(await look({ status: "unavailable", message: "unavailable: the ledger cannot be written" }), [
    "error: The gateway that answers is unavailable: the ledger cannot be written",
  ]);
});

Deno.test("an unwritable folder is an error", { ignore: Deno.build.os !== "linux" }, async () => {
  const found = await checkStoreFiles(
    { store: { kind: "sqlite", path: "/proc/self/sluice.db" } },
    () => Promise.resolve(undefined),
  );
  assertEquals(found.filter(({ level }) => level === "error").length, 1);
  assertStringIncludes(lines(found).join("\n"), 'error: "/proc/self" is not writable');
});

Deno.test({
  name: "a database that belongs to another user is an error, and the error of a start says what to do",
  ignore: Deno.build.os === "windows" || skipIf(Deno.uid() === 0, "the tests run as root, who may write any file"),
  fn: () =>
    inFolder(async (folder) => {
      const path = `${folder}/data/sluice.db`;
      await openSqliteStore(path, { own: true }).close();
      await Deno.chmod(path, 0o400);
      const found = await checkStoreFiles({ store: { kind: "sqlite", path } }, () => Promise.resolve(undefined));
      assertStringIncludes(lines(found).join("\n"), `error: "${path}" is not writable`);
      assertThrows(() => openSqliteStore(path, { own: true }), StoreError, "must be readable and writable");
    }),
});

Deno.test({
  name: "a full disk is the only error, also of a database that it has made unreadable",
  ignore: skipIf(
    !await canRun("unshare", "-rm", "bash", "-c", "mount -t tmpfs tmpfs /mnt"),
    "unshare is not installed, or may not mount a disk",
  ),
  async fn() {
    await inFolder(async (folder) => {
      // A small disk of its own, which disappears with the process.
      const disk = `umask 077; mount -t tmpfs -o size=1500k,mode=700 tmpfs "${folder}" && cd "${folder}" && ` +
        'touch sluice.db sluice.db-owner; head -c 2000000 /dev/zero > ballast; exec "$@"';
      const findings = async (setUp: string): Promise<unknown> => {
        const check = `${setUp}; const { checkStoreFiles } = await import("${import.meta.resolve(CHECK)}");
          const found = await checkStoreFiles({ store: { kind: "sqlite", path: "${folder}/sluice.db" } }, async () => {});
          console.log(JSON.stringify(found.flatMap(({ level, what }) => level === "error" ? [what] : [])));`;
        const args = ["-rm", "bash", "-c", disk, "bash", Deno.execPath(), "eval", "--no-check", check];
        const { stdout } = await new Deno.Command("unshare", { args, stdin: "null" }).output();
        return JSON.parse(new TextDecoder().decode(stdout));
      };
      assertEquals(await findings(""), [`The disk of "${folder}" is full`]);
      // The compiled executable may not ask for the free space, so it writes a file.
      const revoke = 'await Deno.permissions.revoke({ name: "sys" })';
      assertEquals(await findings(revoke), [`The disk of "${folder}" has less than 16 MiB of free space`]);
    });
  },
});

Deno.test("no finding contains a secret", () => {
  const finding: Finding = { about: "x", level: "error", what: `It said ${KEY}`, advice: `Not ${KEY}` };
  rememberSecret(KEY);
  assertEquals(withoutSecrets([finding]), [{ ...finding, what: "It said [key]", advice: "Not [key]" }]);
});
