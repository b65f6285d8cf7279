// The files of the built-in models (in weights/), each between the symbols NAME_begin and NAME_end.

.macro embed name, file
  .balign 64
  .global \name\()_begin
  .type \name\()_begin, %object
\name\()_begin:
  .incbin "\file"
  .global \name\()_end
  .type \name\()_end, %object
\name\()_end:
.endm

  .section .rodata
  embed tessera_default_x2, default-x2.onnx
  embed tessera_default_x4, default-x4.onnx
  embed tessera_default_x4_restore, default-x4-restore.onnx

  // Without this section the linker would make the stack executable.
  .section .note.GNU-stack, "", %progbits
