import torch

from spit.heads import ClassHead


def test_logits_are_linear_in_the_class_token():
    head, class_token = ClassHead(4, 3), torch.randn(2, 4)
    assert head(class_token).shape == (2, 3)
    torch.testing.assert_close(head(2 * class_token), 2 * head(class_token))


def test_no_classes_gives_the_class_token():
    head, class_token = ClassHead(4, 0), torch.randn(2, 4)
    assert torch.equal(head(class_token), class_token)
    assert not list(head.parameters())
