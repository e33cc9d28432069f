import { Secret } from "../../lib/secret.ts";
import { connect, migrate } from "../../lib/store/postgres/client.ts";
import { openPostgresKeys } from "../../lib/store/postgres/keys.ts";
import { freshDatabase, HAS_POSTGRES } from "../engines/engines.ts";
import { testKeys } from "./behaviours_keys.ts";

if (HAS_POSTGRES) {
  testKeys("the Postgres store", async (test) => {
    await using database = await freshDatabase();
    const sql = connect(new Secret(database.url), 4);
    await migrate(sql);
    await test(openPostgresKeys(sql));
    await sql.end();
  });
}
