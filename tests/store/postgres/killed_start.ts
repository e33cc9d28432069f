/** Opens the store at an address. A test kills it meanwhile. */
import { Secret } from "../../../lib/secret.ts";
import { openPostgresStore } from "../../../lib/store/postgres/store.ts";

const [address = ""] = Deno.args;
await openPostgresStore(new Secret(address));
