export { addKey as POST, listKeys as GET } from "../../../lib/admin/keys.ts";
