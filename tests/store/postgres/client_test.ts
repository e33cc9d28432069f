import { assertEquals } from "@std/assert";
import { Secret } from "../../../lib/secret.ts";
import { connect, migrate } from "../../../lib/store/postgres/client.ts";
import { freshDatabase, postgresTest } from "../../support/databases.ts";

postgresTest("nodes that start together on an empty database create its tables once", async () => {
  await using database = await freshDatabase();
  const started = await Promise.allSettled(Array.from({ length: 6 }, async () => {
    const sql = connect(new Secret(database.url), 1);
    try {
      await migrate(sql);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }));
  assertEquals(
    started.map((one) => one.status === "rejected" ? one.reason.message : one.status),
    Array(6).fill("fulfilled"),
  );
});
