/** Two nodes on one Postgres and one Redis, one of which can be cut off from Postgres alone. */
import { assertEquals } from "@std/assert";
import { logUncaughtErrors } from "../../../lib/cli/serve_log.ts";
import { openLimiter } from "../../../lib/limits/open_limiter.ts";
import { Secret } from "../../../lib/secret.ts";
import { openStore } from "../../../lib/store/open.ts";
import { connect } from "../../../lib/store/postgres/client.ts";
import {
  freshDatabase,
  HAS_POSTGRES,
  HAS_REDIS,
  someRedis,
  startPostgres,
  startRedis,
} from "../../support/databases.ts";
import { startGateway } from "../../support/gateway.ts";
import { until } from "../../support/soon.ts";

/** A connection to a server that the test can cut. */
interface Detour extends AsyncDisposable {
  url: string;
  cut(): void;
}

function detourTo(url: string): Detour {
  const { hostname, port } = new URL(url);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.Conn>();
  let isCut = false;
  async function pass(from: Deno.Conn, to: Deno.Conn): Promise<void> {
    open.add(from);
    await from.readable.pipeTo(to.writable).catch(() => {});
    open.delete(from);
  }
  const listening = (async () => {
    for await (const near of listener) {
      if (isCut) near.close();
      else {
        const far = await Deno.connect({ hostname, port: Number(port) });
        void pass(near, far);
        void pass(far, near);
      }
    }
  })();
  const cut = () => {
    isCut = true;
    for (const each of open) {
      try {
        each.close();
      } catch {
        // It has ended.
      }
    }
  };
  const changed = new URL(url);
  changed.port = String(listener.addr.port);
  return {
    url: changed.href,
    cut,
    async [Symbol.asyncDispose]() {
      cut();
      listener.close();
      await listening.catch(() => {});
    },
  };
}

async function startNode(postgres: string, redis: string) {
  const folder = await Deno.makeTempDir();
  const store = await openStore({ kind: "postgres", url: new Secret(postgres) }, {
    own: true,
    shared: { keyAgeMs: 60_000, journal: `${folder}/journal`, journalEntries: 10, log: () => {} },
  });
  const limiter = await openLimiter({ kind: "redis", url: new Secret(redis) }, {
    monotonic: () => performance.now(),
    outage: "local",
    timeoutMs: 2_000,
    leaseMs: 3_000,
    msSinceStoreAnswered: () => store.shared?.msSinceAnswer?.(),
    log: () => {},
  });
  const gateway = startGateway({}, { store, limiter });
  return {
    ...gateway,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

async function readiness({ url }: { url: string }): Promise<string> {
  const response = await fetch(`${url}/readyz`);
  return `${response.status} ${(await response.json()).status}`;
}

Deno.test({
  name: "a node that alone loses Postgres is not ready, unless no other node reaches it",
  ignore: !(HAS_POSTGRES && HAS_REDIS),
  // Connections of the databases' drivers end after the test's own.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    // As `serve` does: the driver of Postgres throws some errors where no code can catch them.
    const forget = logUncaughtErrors(() => {});
    await using postgres = await startPostgres();
    await using redis = await startRedis();
    await using detour = detourTo(postgres.url);
    await using cutOff = await startNode(detour.url, redis.url);
    await using other = await startNode(postgres.url, redis.url);
    assertEquals([await readiness(cutOff), await readiness(other)], ["200 ok", "200 ok"]);

    detour.cut();
    await until("not ready", async () => await readiness(cutOff) === "503 unavailable");
    assertEquals(await readiness(other), "200 ok");

    await postgres.stop("crash");
    const seen = new Set<string>();
    const look = async (node: { url: string }, wanted: string) => {
      seen.add(await readiness(other));
      return await readiness(node) === wanted;
    };
    await until("as ready as all", () => look(cutOff, "200 degraded"));
    await until("the same", () => look(other, "200 degraded"));
    // Two signs of life of each.
    for (const end = performance.now() + 2_000; performance.now() < end;) await look(cutOff, "");
    assertEquals([...seen].filter((each) => each !== "200 ok"), ["200 degraded"]);
    forget();
  },
});

Deno.test({
  name: "a node that can read no keys or changes, but write entries, is degraded and serves the keys that it knows",
  ignore: !(HAS_POSTGRES && HAS_REDIS),
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using database = await freshDatabase();
    await using node = await startNode(database.url, await someRedis());
    const sql = connect(new Secret(database.url), 1);
    const answers = async () =>
      (await node.ask("chat", { model: "sluice/echo", messages: [{ role: "user", content: "x" }] })).status;
    assertEquals([await answers(), await readiness(node)], [200, "200 ok"]);
    for (const table of ["keys", "changes"]) {
      await sql.unsafe(`ALTER TABLE ${table} RENAME TO hidden`);
      await until("degraded", async () => await readiness(node) === "200 degraded");
      assertEquals(await answers(), 200);
      await sql.unsafe(`ALTER TABLE hidden RENAME TO ${table}`);
      await until("ready again", async () => await readiness(node) === "200 ok");
    }
    await sql.end();
  },
});
