export { rotateSecret as POST } from "../../../../../lib/admin/keys.ts";
