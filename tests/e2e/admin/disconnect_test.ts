import { assertEquals } from "@std/assert";
import { runSliced } from "../../../lib/scheduler.ts";
import type { KeptEntry, LedgerStore } from "../../../lib/store/ledger.ts";
import type { KeyStore } from "../../../lib/store/keys.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import type { Store } from "../../../lib/store/store.ts";
import { DAY_ONE, entryOf } from "../../billing/reports/entries.ts";
import { ADMIN_KEY, startKeyed } from "../../support/keyed_gateway.ts";
import { APART, ask } from "../../admin/admin_client.ts";
import { until } from "../../support/soon.ts";

/** A store whose ledger and key list are endless until stopped. */
interface EndlessStore extends Store {
  pages: number;
  /** Called at each page. */
  read: () => void;
  end(): void;
}

function openEndless(): EndlessStore {
  const store = openMemoryStore();
  let isOver = false;
  const entry = entryOf({ at: DAY_ONE });

  function isMore(): boolean {
    endless.pages++;
    endless.read();
    return !isOver;
  }

  function entries({ after, limit }: { after: number; limit: number }): Promise<KeptEntry[]> {
    const kept = (_: unknown, index: number) => ({
      ...entry,
      id: `r${after + index}`,
      seq: after + 1 + index,
      check: 0,
    });
    return Promise.resolve(isMore() ? Array.from({ length: limit }, kept) : []);
  }

  function* walk(): Generator<void, []> {
    while (isMore()) yield;
    return [];
  }

  const ledger: Partial<LedgerStore> = {
    entries,
    entriesWithin: entries,
    usage: (_, signal) => runSliced(walk(), signal),
    upstreamDays: (_, signal) => runSliced(walk(), signal),
  };
  const keys: Partial<KeyStore> = {
    page: ({ after }) => Promise.resolve({ keys: [], ...(isMore() && { next: after + 1 }) }),
  };
  const endless: EndlessStore = {
    ...store,
    ledger: Object.assign(Object.create(store.ledger), ledger),
    keys: Object.assign(Object.create(store.keys), keys),
    pages: 0,
    read: () => {},
    end: () => void (isOver = true),
  };
  return endless;
}

const WALKS = [
  ...["key", "group", "model", "day", "upstream"].map((by) => `GET /usage?by=${by}&since=1d`),
  "POST /audit",
  "GET /keys",
];

for (const name of WALKS) {
  Deno.test(`${name}: reading stops when the client disconnects, and the log says so`, async () => {
    const store = openEndless();
    await using gateway = startKeyed(APART, { store });
    try {
      const [method = "", path = ""] = name.split(" ");
      const disconnect = new AbortController();
      store.read = () => disconnect.abort();
      const answer = fetch(`${gateway.adminUrl}/admin/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN_KEY}` },
        signal: disconnect.signal,
      });
      assertEquals(await answer.then(({ status }) => status, ({ name }) => name), "AbortError");
      await until("the log line", () => gateway.requestLines.length > 0);
      const { pages } = store;
      const [line] = gateway.requestLines;
      assertEquals(
        [line?.endpoint, line?.status, line?.ending, line?.level, line?.kind],
        ["admin", 499, "client_disconnected", "info", undefined],
      );
      // A read that continued in the background would read pages meanwhile.
      for (let count = 0; count < 20; count++) await ask(gateway, "GET /health");
      assertEquals(store.pages, pages);
      assertEquals(gateway.logs, []);
    } finally {
      store.end();
    }
  });
}
