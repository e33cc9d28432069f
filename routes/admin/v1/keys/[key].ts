export { deleteKey as DELETE, editKey as PATCH, showKey as GET } from "../../../../lib/admin/keys.ts";
