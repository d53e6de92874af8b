package web

// OwnerIn is ownerIn.
var OwnerIn = ownerIn
